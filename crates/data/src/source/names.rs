//! Names of text encodings: the web's, and Python's, which are what scripts that wrote a file used.
//!
//! Invariant: a name stands for the same characters as it does where it comes from, or it is refused.

use encoding_rs::Encoding as Web;

use super::encoding::Encoding;

/// A name further from the wanted one than this is no suggestion (1 is equal, 0 has nothing in common).
const NEAR: f64 = 0.8;

/// The web's name of an encoding, and Python's names for it without `-`, `_`, `.` and blanks (its `encodings.aliases`).
const ALIASES: [(&str, &[&str]); 38] = [
    ("big5", &["big5tw", "csbig5", "xmactradchinese", "big5hkscs", "hkscs", "big5"]),
    ("windows-1250", &["1250", "windows1250", "cp1250"]),
    ("windows-1251", &["1251", "windows1251", "cp1251"]),
    ("windows-1252", &["1252", "windows1252", "cp1252"]),
    ("windows-1253", &["1253", "windows1253", "cp1253"]),
    ("windows-1254", &["1254", "windows1254", "cp1254"]),
    ("windows-1255", &["1255", "windows1255", "cp1255"]),
    ("windows-1256", &["1256", "windows1256", "cp1256"]),
    ("windows-1257", &["1257", "windows1257", "cp1257"]),
    ("windows-1258", &["1258", "windows1258", "cp1258"]),
    ("ibm866", &["866", "csibm866", "ibm866", "cp866"]),
    ("shift_jis", &["932", "ms932", "mskanji", "csshiftjis", "sjis", "shiftjis", "xmacjapanese", "cp932"]),
    (
        "euc-kr",
        &[
            "949",
            "ms949",
            "uhc",
            "euckr",
            "korean",
            "ksc5601",
            "ksc56011987",
            "ksx1001",
            "xmackorean",
            "cp949",
        ],
    ),
    ("euc-jp", &["eucjp", "ujis"]),
    ("gb18030", &["gb180302000", "gb18030"]),
    (
        "gb2312",
        &[
            "chinese",
            "csiso58gb231280",
            "euccn",
            "eucgb2312cn",
            "gb23121980",
            "gb231280",
            "isoir58",
            "xmacsimpchinese",
            "gb2312",
        ],
    ),
    ("gbk", &["936", "cp936", "ms936", "gbk"]),
    ("iso-2022-jp", &["csiso2022jp", "iso2022jp"]),
    ("iso-8859-10", &["csisolatin6", "iso885910", "iso8859101992", "isoir157", "l6", "latin6"]),
    ("iso-8859-13", &["iso885913", "l7", "latin7"]),
    ("iso-8859-14", &["iso885914", "iso8859141998", "isoceltic", "isoir199", "l8", "latin8"]),
    ("iso-8859-15", &["iso885915", "l9", "latin9"]),
    ("iso-8859-16", &["iso885916", "iso8859162001", "isoir226", "l10", "latin10"]),
    ("iso-8859-2", &["csisolatin2", "iso88592", "iso885921987", "isoir101", "l2", "latin2"]),
    ("iso-8859-3", &["csisolatin3", "iso88593", "iso885931988", "isoir109", "l3", "latin3"]),
    ("iso-8859-4", &["csisolatin4", "iso88594", "iso885941988", "isoir110", "l4", "latin4"]),
    ("iso-8859-5", &["csisolatincyrillic", "cyrillic", "iso88595", "iso885951988", "isoir144"]),
    (
        "iso-8859-6",
        &["arabic", "asmo708", "csisolatinarabic", "ecma114", "iso88596", "iso885961987", "isoir127"],
    ),
    (
        "iso-8859-7",
        &["csisolatingreek", "ecma118", "elot928", "greek", "greek8", "iso88597", "iso885971987", "isoir126"],
    ),
    ("iso-8859-8", &["csisolatinhebrew", "hebrew", "iso88598", "iso885981988", "isoir138"]),
    ("koi8-r", &["cskoi8r", "koi8r"]),
    ("x-mac-cyrillic", &["maccyrillic"]),
    ("macintosh", &["macintosh", "macroman"]),
    ("utf-16le", &["u16", "utf16", "unicodelittleunmarked", "utf16le"]),
    ("utf-16be", &["unicodebigunmarked", "utf16be"]),
    ("utf-8", &["cp65001", "u8", "utf", "utf8", "utf8ucs2", "utf8ucs4", "utf8sig"]),
    ("windows-874", &["cp874"]),
    ("koi8-u", &["koi8u"]),
];

/// Encodings of the web that hold more than the standard of the name: bytes that the standard has no text for, and
/// what the name is. Names without `-`, `_` and blanks.
const STRICT: [(&[&str], &str, &str, u8); 4] = [
    (
        &[
            "646",
            "ansix341968",
            "ansix341986",
            "ascii",
            "cp367",
            "csascii",
            "ibm367",
            "iso646irv1991",
            "iso646us",
            "isoir6",
            "us",
            "usascii",
        ],
        "US-ASCII",
        "windows-1252",
        0xff,
    ),
    (
        &[
            "8859",
            "88591",
            "cp819",
            "csisolatin1",
            "ibm819",
            "iso8859",
            "iso88591",
            "iso885911987",
            "isoir100",
            "l1",
            "latin",
            "latin1",
        ],
        "ISO-8859-1",
        "windows-1252",
        0x9f,
    ),
    (
        &["csisolatin5", "iso88599", "iso885991989", "isoir148", "l5", "latin5"],
        "ISO-8859-9",
        "windows-1254",
        0x9f,
    ),
    (
        &[
            "iso885911",
            "iso8859112001",
            "isoir166",
            "thai",
            "tis620",
            "tis6200",
            "tis62025290",
            "tis62025291",
        ],
        "ISO-8859-11",
        "windows-874",
        0x9f,
    ),
];

/// Names of encodings that are not read, and what to do instead.
const OTHERS: [(&str, &str); 12] = [
    ("utf32", "UTF-32 is not read: save the file as UTF-8"),
    ("u32", "UTF-32 is not read: save the file as UTF-8"),
    ("utf7", "UTF-7 is not read: save the file as UTF-8"),
    ("cp950", "the nearest is big5, which has other signs at some places; or save the file as UTF-8"),
    ("johab", "the nearest is euc-kr (cp949), which is written otherwise: save the file as UTF-8"),
    (
        "shiftjis",
        "the nearest is shift_jis (cp932), without the characters of JIS X 0213; or save the file as UTF-8",
    ),
    ("eucjis", "the nearest is euc-jp, without the characters of JIS X 0213; or save the file as UTF-8"),
    ("iso2022", "the nearest is iso-2022-jp; or save the file as UTF-8"),
    ("hz", "it is written otherwise than gb18030: save the file as UTF-8"),
    (
        "cp",
        "code pages read are cp866, cp874, cp932, cp936, cp949 and cp1250 to cp1258; or save the file as UTF-8",
    ),
    ("ibm", "the only one of these is ibm866; or save the file as UTF-8"),
    ("mac", "the nearest are macintosh (mac_roman) and mac_cyrillic; or save the file as UTF-8"),
];

/// Names that people may have meant.
const USUAL: [&str; 22] = [
    "utf-8",
    "utf-16le",
    "utf-16be",
    "ascii",
    "latin-1",
    "iso-8859-1",
    "iso-8859-2",
    "iso-8859-15",
    "windows-1250",
    "windows-1251",
    "windows-1252",
    "shift_jis",
    "euc-jp",
    "iso-2022-jp",
    "gbk",
    "gb2312",
    "gb18030",
    "big5",
    "euc-kr",
    "koi8-r",
    "mac_roman",
    "cp932",
];

/// The encoding of a name.
///
/// # Errors
/// If there is none; the message says what is near.
pub(super) fn find(given: &str) -> Result<Encoding, String> {
    let name: String =
        given.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    if let Some((_, shown, web, last)) = STRICT.iter().find(|(names, ..)| names.contains(&name.as_str())) {
        let web = Web::for_label(web.as_bytes());
        return web.map(|web| Encoding::strict(web, shown, *last)).ok_or_else(|| unknown(given, &name));
    }
    let alias =
        ALIASES.iter().find(|(_, names)| names.contains(&name.as_str())).map(|(web, _)| (*web).to_owned());
    let hyphens = given.trim().replace(['_', ' '], "-");
    let numbered = [("cp125", "windows-125"), ("windows125", "windows-125"), ("iso8859", "iso-8859-")]
        .iter()
        .find_map(|(python, web)| name.strip_prefix(python).map(|number| format!("{web}{number}")));
    let labels = alias.into_iter().chain([given.into(), hyphens, name.clone()]).chain(numbered);
    let mut known = labels.filter_map(|label| Web::for_label(label.trim().as_bytes()));
    // The web's name for what must not be decoded.
    let known = known.find(|web| *web != encoding_rs::REPLACEMENT && *web != encoding_rs::X_USER_DEFINED);
    known.map(Encoding::web).ok_or_else(|| unknown(given, &name))
}

fn unknown(given: &str, name: &str) -> String {
    let other = OTHERS.iter().find(|(start, _)| name.starts_with(start));
    let score = |usual: &&&str| strsim::jaro_winkler(usual, &given.to_lowercase());
    let near = USUAL.iter().max_by(|a, b| score(a).total_cmp(&score(b))).filter(|usual| score(usual) >= NEAR);
    let advice = match (other, near) {
        (Some((_, advice)), _) => format!(": {advice}"),
        (None, Some(near)) => format!(". Did you mean {near}?"),
        (None, None) => {
            "; usual ones are utf-8, utf-16le, windows-1252, latin-1, shift_jis, euc-jp, gbk, gb18030, big5 and euc-kr".into()
        }
    };
    format!("there is no encoding '{given}' here{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_python_and_of_the_web() {
        for (given, name) in [
            ("utf-8", "UTF-8"),
            ("UTF8", "UTF-8"),
            ("utf_8", "UTF-8"),
            ("utf-8-sig", "UTF-8"),
            ("utf_8_sig", "UTF-8"),
            ("U8", "UTF-8"),
            ("utf-16", "UTF-16LE"),
            ("utf_16_be", "UTF-16BE"),
            ("latin-1", "ISO-8859-1"),
            ("latin1", "ISO-8859-1"),
            ("iso8859-1", "ISO-8859-1"),
            ("ISO_8859_1", "ISO-8859-1"),
            ("iso8859-2", "ISO-8859-2"),
            ("iso8859_15", "ISO-8859-15"),
            ("latin2", "ISO-8859-2"),
            ("iso-8859-9", "ISO-8859-9"),
            ("ascii", "US-ASCII"),
            ("us-ascii", "US-ASCII"),
            ("cp1252", "windows-1252"),
            ("windows_1251", "windows-1251"),
            ("cp1258", "windows-1258"),
            ("cp932", "Shift_JIS"),
            ("Shift_JIS", "Shift_JIS"),
            ("sjis", "Shift_JIS"),
            ("cp936", "GBK"),
            ("gb2312", "GBK"),
            ("cp949", "EUC-KR"),
            ("euc_kr", "EUC-KR"),
            ("euc_jp", "EUC-JP"),
            ("big5hkscs", "Big5"),
            ("mac_roman", "macintosh"),
            ("mac-cyrillic", "x-mac-cyrillic"),
            ("koi8_r", "KOI8-R"),
            ("cp866", "IBM866"),
            ("iso2022_jp", "ISO-2022-JP"),
            ("tis-620", "ISO-8859-11"),
            ("shiftjis", "Shift_JIS"),
            ("s_jis", "Shift_JIS"),
            ("1250", "windows-1250"),
            ("1258", "windows-1258"),
            ("euc_cn", "GBK"),
            ("euccn", "GBK"),
            ("ks_c_5601_1987", "EUC-KR"),
            ("ksx1001", "EUC-KR"),
            ("hkscs", "Big5"),
            ("big5_tw", "Big5"),
            ("iso8859", "ISO-8859-1"),
            ("iso_8859_1_1987", "ISO-8859-1"),
            ("iso_8859_10_1992", "ISO-8859-10"),
            ("l7", "ISO-8859-13"),
            ("l8", "ISO-8859-14"),
            ("l10", "ISO-8859-16"),
            ("us", "US-ASCII"),
            ("iso_646.irv_1991", "US-ASCII"),
            ("unicodebigunmarked", "UTF-16BE"),
            ("utf8_ucs4", "UTF-8"),
        ] {
            assert_eq!(find(given).map(Encoding::name), Ok(name), "{given}");
        }
    }

    #[test]
    fn what_is_not_here_is_refused_with_what_is_near() {
        for (given, advice) in [
            ("utf-32", "UTF-32 is not read: save the file as UTF-8"),
            ("UTF_32_LE", "UTF-32 is not read"),
            ("utf-7", "save the file as UTF-8"),
            ("cp950", "nearest is big5"),
            ("cp437", "cp1250 to cp1258"),
            ("shift_jis_2004", "nearest is shift_jis"),
            ("iso-2022-kr", "nearest is iso-2022-jp"),
            ("mac_greek", "mac_cyrillic"),
            ("uft-8", "Did you mean utf-8?"),
            ("windows-125", "Did you mean windows-125"),
            ("nonsense", "usual ones are"),
            ("", "usual ones are"),
            ("x-user-defined", "usual ones are"),
        ] {
            let error = find(given).map(Encoding::name).expect_err(given);
            assert!(error.contains(advice) && error.contains("there is no encoding"), "{error}");
        }
    }
}
