//! Texts that stand where a picture should be, each with what it takes to mend it.

/// What begins a text of each kind (white space and case aside), and what it is.
const KINDS: [(&[u8], &str); 17] = [
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself: run `git lfs pull`"),
    (b"<!doctype html", HTML),
    (b"<html", HTML),
    (b"<head", HTML),
    (b"<body", HTML),
    (b"<!--", HTML),
    (
        b"<?xml",
        "an XML answer, as of a storage service that refused: look at the address and the access rights",
    ),
    (
        b"<error",
        "an XML answer, as of a storage service that refused: look at the address and the access rights",
    ),
    (b"{", "a JSON answer, as of a service that refused: download the picture again"),
    (b"[", "a JSON answer, as of a service that refused: download the picture again"),
    (b"http://", "an address: download the picture first"),
    (b"https://", "an address: download the picture first"),
    (b"data:image/", "a data address: its base64 part was not decoded"),
    (b"/9j/", "base64 of a JPEG: it was encoded twice"),
    (b"ivborw0kgg", "base64 of a PNG: it was encoded twice"),
    (b"b'\\x", "bytes as Python prints them: write base64 instead"),
    (b"b\"\\x", "bytes as Python prints them: write base64 instead"),
];
const HTML: &str = "a web page, as of a failed download";

/// What a text is, or what else the bytes look like.
pub(super) fn kind(bytes: &[u8]) -> Option<&'static str> {
    if bytes.iter().all(|b| *b == 0) {
        return Some("nothing but zeros, as of a download that made room and never began");
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let head = text[..text.len().min(64)].to_ascii_lowercase();
    let known = KINDS.iter().find(|(tag, _)| head.starts_with(tag)).map(|(_, what)| *what);
    known.or_else(|| is_path(text).then_some("a file's name: the source wants the picture itself here"))
}

/// Whether the bytes are the name of a picture file.
fn is_path(text: &[u8]) -> bool {
    let name = text.trim_ascii_end().to_ascii_lowercase();
    let ending = [&b".jpg"[..], b".jpeg", b".png", b".webp", b".gif"].iter().any(|e| name.ends_with(e));
    ending && name.len() < 1024 && name.iter().all(|b| *b >= b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_named() {
        let is = |text: &[u8], part: &str| assert!(kind(text).is_some_and(|k| k.contains(part)), "{text:?}");
        is(b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs pull");
        is(b"\n  <!DOCTYPE html><title>404</title>", "web page");
        is(b"\xef\xbb\xbf<HTML>", "web page");
        is(b"{\"error\": \"rate limited\"}", "JSON");
        is(b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "storage");
        is(b"https://example.org/a.jpg", "address");
        is(b"images/0001.JPG\n", "name");
        is(b"b'\\xff\\xd8\\xff'", "Python");
        is(b"/9j/4AAQSkZJRg", "twice");
        is(&[0; 10], "zeros");
        assert_eq!(kind(b"Not Found"), None);
    }
}
