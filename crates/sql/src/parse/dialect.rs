//! The SQL library's generic dialect, with an end.
//!
//! The parser tries a word such as NOT, CAST or ARRAY once more as a name where what follows is no SQL. If that is within
//! others of the kind, each level doubles the work: of thirty NOTs before a mistake there would be no end. So it is refused
//! where it has begun with far more expressions than a statement of its length can have.

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use std::any::TypeId;
use std::cell::Cell;

/// The dialect of one script.
#[derive(Debug)]
pub(super) struct Bounded {
    generic: GenericDialect,
    /// Expressions that the parser may still begin with.
    left: Cell<usize>,
}

impl Bounded {
    /// For a script of so many tokens. A statement begins with no more expressions than it has tokens, some of them a few
    /// times.
    pub(super) fn new(token_count: usize) -> Bounded {
        Bounded { generic: GenericDialect {}, left: Cell::new(10_000 + token_count.saturating_mul(64)) }
    }

    /// Whether the parser was stopped.
    pub(super) fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }
}

macro_rules! as_generic {
    ($($name:ident)*) => { $(fn $name(&self) -> bool { self.generic.$name() })* };
}

impl Dialect for Bounded {
    /// The parser asks some things of the generic dialect by its type.
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn parse_prefix(&self, _parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        match self.left.get() {
            // The one error that it does not try to go on behind.
            0 => Some(Err(ParserError::RecursionLimitExceeded)),
            left => {
                self.left.set(left - 1);
                None
            }
        }
    }

    /// Words that are no names without quotes, so that the mistake is told which is behind them.
    fn is_reserved_for_identifier(&self, word: Keyword) -> bool {
        use Keyword::{CASE, CAST, NOT, SAFE_CAST, TRY_CAST};
        matches!(word, CASE | CAST | NOT | SAFE_CAST | TRY_CAST) || self.generic.is_reserved_for_identifier(word)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        self.generic.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.generic.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.generic.is_identifier_part(ch)
    }

    as_generic! {
        supports_unicode_string_literal supports_partition_by_after_order_by supports_array_join_syntax
        supports_group_by_expr supports_group_by_with_modifier supports_left_associative_joins_without_parens
        supports_connect_by supports_match_recognize supports_pipe_operator
        supports_start_transaction_modifier supports_window_function_null_treatment_arg
        supports_dictionary_syntax supports_window_clause_named_window_reference
        supports_parenthesized_set_variables supports_select_wildcard_except support_map_literal_syntax
        allow_extract_custom allow_extract_single_quotes supports_extract_comma_syntax
        supports_create_view_comment_syntax supports_parens_around_table_factor
        supports_values_as_table_factor supports_create_index_with_clause
        supports_explain_with_utility_options supports_limit_comma supports_update_order_by
        supports_from_first_select supports_projection_trailing_commas supports_asc_desc_in_column_definition
        supports_try_convert supports_bitwise_shift_operators supports_comment_on supports_load_extension
        supports_named_fn_args_with_assignment_operator supports_struct_literal supports_empty_projections
        supports_nested_comments supports_multiline_comment_hints supports_user_host_grantee
        supports_string_escape_constant supports_array_typedef_with_brackets supports_match_against
        supports_set_names supports_comma_separated_set_assignments supports_filter_during_aggregation
        supports_select_wildcard_exclude supports_data_type_signed_suffix supports_interval_options
        supports_quote_delimited_string supports_select_wildcard_replace supports_select_wildcard_ilike
        supports_select_wildcard_rename supports_optimize_table supports_install supports_detach
        supports_prewhere supports_with_fill supports_limit_by supports_interpolate supports_settings
        supports_select_format supports_comment_optimizer_hint supports_constraint_keyword_without_name
        supports_key_column_option supports_comma_separated_trim supports_cte_without_as
        supports_select_item_multi_column_alias supports_xml_expressions
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::parse;

    #[test]
    fn mistakes_within_words_that_may_be_names_are_told_in_time() {
        for (open, close) in
            [("NOT (", ")"), ("CAST(", " AS INT)"), ("ARRAY[", "]"), ("CEIL(", ")"), ("TRY_CAST(", " AS INT)")]
        {
            for depth in [1, 20, 40, 99] {
                let error = parse(&format!("SELECT {}1 +{}", open.repeat(depth), close.repeat(depth)));
                assert!(error.is_err(), "{open} {depth}");
            }
        }
        assert!(parse(&format!("SELECT {}1 = 1{}", "NOT (".repeat(48), ")".repeat(48))).is_ok());
        let too_deep = parse(&format!("SELECT {}1 = 1{}", "NOT (".repeat(60), ")".repeat(60))).unwrap_err();
        assert!(too_deep.to_string().contains("nests deeper"), "{too_deep}");
        let unfinished = parse("SELECT CASE WHEN a THEN 1 + END").unwrap_err();
        assert!(unfinished.to_string().contains("Expected: END"), "{unfinished}");
        let long = vec!["NOT (CAST(a AS INT) = ARRAY[1, 2, 3][1])"; 300].join(" AND ");
        assert!(parse(&format!("SELECT {long}")).is_ok());
    }
}
