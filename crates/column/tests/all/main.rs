//! What tables promise, a module for each promise. One binary, because each is linked by itself.

mod alterations_rewrite_no_row;
mod chunks_follow_the_layout;
mod conflicts_are_told;
mod drafts_agree_with_a_model;
mod format_pages_show_what_is_written;
mod many_small_statements_make_few_groups;
mod memory_is_accounted_for;
mod pages_come_back_by_themselves;
mod pressing_goes_on_behind_what_cannot_be_read;
mod scans_read_ahead;
mod support;
mod threads_press_the_same;
mod what_is_written_can_be_read;
