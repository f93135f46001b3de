//! Changes of settings. Whether a value makes sense is not checked here.

use crate::records::primitives::take_byte;
use crate::records::settings::{put_value, take_value};
use crate::settings::{Assignment, Setting};

use crate::letters::Malformed;
use crate::letters::list::{put_list, take_vec};

pub(crate) fn put_changes(out: &mut Vec<u8>, changes: &[Assignment<'_>]) {
    put_list(out, changes, |out, (setting, value)| {
        out.push(setting.tag);
        put_value(out, *value);
    });
}

pub(crate) fn take_changes<'a>(input: &mut &'a [u8]) -> Result<Vec<Assignment<'a>>, Malformed> {
    take_vec(input, |input| {
        let setting = Setting::tagged(take_byte(input)?);
        Ok((setting.ok_or(Malformed::OutOfRange("setting"))?, take_value(input)?))
    })
}
