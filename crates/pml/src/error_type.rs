//! stub
use pml_model::trace::ErrorType;
pub fn of(_: &str, _: &str, _: Option<&str>) -> ErrorType {
    ErrorType::Unknown
}
pub fn is_blocked(_: ErrorType, _: &str) -> bool {
    false
}
