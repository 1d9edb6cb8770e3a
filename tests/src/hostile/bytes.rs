//! Generators of the bytes that hostile clients send: beginnings of messages, huge lengths, and
//! HTTP/2 frames.

/// The number of kinds of abuse for [`frames_of`].
pub(super) const ABUSES: usize = 5;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
const DATA: u8 = 0;
const RST_STREAM: u8 = 3;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Returns an HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns the headers of a call in HPACK, without a table.
fn headers(path: &str) -> Vec<u8> {
    let mut block = Vec::new();
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "x"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// Returns the beginning of an HTTP/2 connection.
pub(super) fn begin_http2() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()
}

/// Returns beginnings of messages without their ends, and messages with huge lengths.
pub(super) fn halves() -> Vec<Vec<u8>> {
    let startup = b"\0\0\0\x12\0\x03\0\0user\0ada\0\0".to_vec();
    let with = |more: &[u8]| [&startup[..], more].concat();
    vec![
        startup[..11].to_vec(),
        b"\0\0\0\x08\x04\xd2\x16/".to_vec(),
        b"\x7f\xff\xff\xff\0\x03\0\0user".to_vec(),
        b"\0\0\x27\x10\0\x03\0\0user\0".to_vec(),
        with(b"Q\0\0\x01\0SELECT "),
        with(b"Q\x7f\xff\xff\xff"),
        with(b"B\0\xff\xff\xff\0\0\xff\xff"),
        with(b"p\xff\xff\xff\xff"),
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03".to_vec(),
        PREFACE[..15].to_vec(),
        [&begin_http2()[..], &[0xff, 0xff, 0xff, DATA, 0, 0, 0, 0, 1]].concat(),
        [&begin_http2()[..], &frame(HEADERS, 0, 1, &headers("/sextant.v1.Query/Scan"))].concat(),
        [
            &begin_http2()[..],
            &frame(HEADERS, END_HEADERS, 1, &headers("/sextant.v1.Query/Scan")),
            &frame(DATA, 0, 1, &[0, 0xff, 0xff, 0xff, 0xff, 1]),
        ]
        .concat(),
        [
            &begin_http2()[..],
            &frame(HEADERS, END_HEADERS, 1, &headers("/sextant.v1.Peer/Call")),
            &frame(DATA, END_STREAM, 1, &[0, 0, 0, 0, 5, 1, 2, 3, 4, 5]),
        ]
        .concat(),
        b"GET /status HTTP/1.1\r\nhost: x\r\n".to_vec(),
        b"POST /status HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\nx".to_vec(),
        b"GET /".to_vec(),
        [b"GET / HTTP/1.1\r\nx: ".to_vec(), vec![b'a'; 1 << 20]].concat(),
    ]
}

/// Returns frames for a kind of abuse: streams that are reset at once, a request whose headers
/// never end, pings, settings, or streams that remain open.
pub(super) fn frames_of(abuse: usize, round: u32) -> Vec<u8> {
    let call = headers("/sextant.v1.Admin/ListBuckets");
    let stream = |n: u32| 2 * (round * 50 + n) + 1;
    let many = |of: &dyn Fn(u32) -> Vec<u8>| (0..50).flat_map(of).collect::<Vec<u8>>();
    match abuse {
        0 => many(&|n| {
            let reset = frame(RST_STREAM, 0, stream(n), &[0, 0, 0, 8]);
            [frame(HEADERS, END_HEADERS | END_STREAM, stream(n), &call), reset].concat()
        }),
        1 if round == 0 => frame(HEADERS, 0, 1, &call),
        1 => many(&|n| {
            frame(
                CONTINUATION,
                0,
                1,
                &[&[0, 4][..], b"x-aa", &[8], &[b'a' + n as u8 % 26; 8]].concat(),
            )
        }),
        2 => many(&|_| frame(PING, 0, 0, &[7; 8])),
        3 => many(&|_| frame(SETTINGS, 0, 0, &[])),
        _ => many(&|n| frame(HEADERS, END_HEADERS, stream(n), &call)),
    }
}
