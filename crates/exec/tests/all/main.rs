//! What the engine promises, a module for each promise. One binary, because each is linked by itself.

mod aggregates_agree_with_a_naive_model;
mod arrow_values_survive_a_segment;
mod dropped_rows_leave_no_trace;
mod equal_neighbours_are_computed_once;
mod expressions_agree_with_a_naive_model;
mod filters_agree_with_a_naive_model;
mod foreign_aggregates_are_told_their_groups;
mod grouping_sets_agree_with_the_groups_of_each;
mod groups_agree_with_a_naive_model;
mod groups_that_cannot_be_read_are_left_out_whole;
mod joins_agree_with_a_naive_model;
mod long_expressions_run;
mod rejected_vectors_stay_undecoded;
mod row_groups_share_an_encoder;
mod rows_that_do_not_fit_are_spilled;
mod runs_end_as_they_should;
mod scans_say_what_they_will_read;
mod sorts_agree_with_a_naive_model;
mod support;
mod unions_agree_with_a_naive_model;
mod windows_agree_with_a_naive_model;
