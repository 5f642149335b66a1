//! Days since 1970-01-01 to year, month and day, and back: the proleptic Gregorian calendar, as Python's.
//!
//! Howard Hinnant, "chrono-compatible low-level date algorithms": years begin in March, so the leap day comes last.

/// Days in 400 years.
const ERA_DAYS: i64 = 146_097;

/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// Days since 1970-01-01 of a date that exists.
pub(crate) fn days_from_date(year: i32, month: u8, day: u8) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    era * ERA_DAYS + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - EPOCH_DAYS
}

/// Year, month and day; `None` outside of the years 1 to 9999 that Python's dates have.
pub(crate) fn date_from_days(days: i64) -> Option<(i32, u8, u8)> {
    let days = days.checked_add(EPOCH_DAYS)?;
    let era = days.div_euclid(ERA_DAYS);
    let day_of_era = days.rem_euclid(ERA_DAYS);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / (ERA_DAYS - 1)) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (1..=9999).contains(&year).then_some((year as i32, month as u8, day as u8))
}
