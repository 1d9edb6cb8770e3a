//! Tests of limited connections over real sockets.

use super::*;
use crate::flow::ClientLimits;

/// Returns all bytes that a client of a full port receives.
async fn heard_beyond(speech: PortProtocol) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let env = Env::real();
    let limit = PortLimit::new(1, "some_max");
    let mut accepted = limited_connections(listener, speech, limit, &env);
    let _first = TcpStream::connect(address).await.unwrap();
    let place = accepted.next().await.unwrap().unwrap();
    let mut second = TcpStream::connect(address).await.unwrap();
    let hears = async {
        let mut heard = Vec::new();
        second.write_all(b"some bytes of a request").await.unwrap();
        second.read_to_end(&mut heard).await.unwrap();
        String::from_utf8_lossy(&heard).into_owned()
    };
    let heard = tokio::select! {
        heard = hears => heard,
        _ = accepted.next() => panic!("a second connection has no place"),
    };
    drop(place);
    let _third = TcpStream::connect(address).await.unwrap();
    accepted.next().await.unwrap().expect("the place is free again");
    heard
}

/// Returns all bytes that the second client of an address receives, if the address may have one
/// connection.
async fn heard_from_full_address(speech: PortProtocol) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = ClientLimits { address_connections_max: Some(1), ..ClientLimits::default() };
    let limit = PortLimit::new(9, "some_max").of_users(&ClientCapacity::new(limits));
    let mut accepted = limited_connections(listener, speech, limit, &Env::real());
    let _first = TcpStream::connect(address).await.unwrap();
    let _place = accepted.next().await.unwrap().unwrap();
    let mut second = TcpStream::connect(address).await.unwrap();
    let hears = async {
        let mut heard = Vec::new();
        second.read_to_end(&mut heard).await.unwrap();
        String::from_utf8_lossy(&heard).into_owned()
    };
    tokio::select! {
        heard = hears => heard,
        _ = accepted.next() => panic!("the address has no second place"),
    }
}

#[tokio::test]
async fn an_address_with_too_many_connections_is_told_the_setting() {
    for speech in [PortProtocol::Http, PortProtocol::Grpc] {
        let heard = heard_from_full_address(speech).await;
        assert!(heard.contains("address_connections_max"), "{speech:?}: {heard:?}");
    }
}

/// Returns a connection with these limits, and its client's end.
async fn connection(limits: ClientLimits) -> (LimitedConnection, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let limit = PortLimit::new(9, "some_max").of_users(&ClientCapacity::new(limits));
    let mut accepted = limited_connections(listener, PortProtocol::Grpc, limit, &Env::real());
    (accepted.next().await.unwrap().unwrap(), client)
}

#[tokio::test]
async fn a_client_that_takes_no_bytes_is_disconnected() {
    let stall = Some(Duration::from_millis(200));
    let limits = ClientLimits { write_stall: stall, ..ClientLimits::default() };
    let (mut served, _silent) = connection(limits).await;
    let writes = async {
        loop {
            if let Err(error) = served.write_all(&[7; 64 << 10]).await {
                return error;
            }
        }
    };
    let error = timeout(Duration::from_secs(20), writes).await.expect("an end");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    let flow = &served.stall.as_ref().expect("a port for users").flow();
    assert!(flow.refusals.by_setting().any(|counted| counted == ("write_stall_s", 1)));
}

#[tokio::test]
async fn a_connection_without_calls_ends() {
    let idle = Some(Duration::from_millis(100));
    let limits = ClientLimits { grpc_idle: idle, ..ClientLimits::default() };
    let (mut served, mut client) = connection(limits).await;
    // The frame follows the preface.
    client.write_all(&[1; Opening::BYTES]).await.unwrap();
    let mut bytes = [0; Opening::BYTES];
    served.read_exact(&mut bytes).await.unwrap();
    let call = served.peer.begin_call().expect("a port for users");
    let mut read = Box::pin(async { served.read(&mut bytes).await.map_err(|e| e.kind()) });
    let during = timeout(Duration::from_millis(300), read.as_mut()).await;
    assert!(during.is_err(), "a call is open");
    drop(call);
    let ended = timeout(Duration::from_secs(20), read).await.expect("an end");
    assert_eq!(ended, Err(io::ErrorKind::TimedOut));
}

#[tokio::test]
async fn what_has_come_is_read_before_a_connection_without_calls_ends() {
    let idle = Some(Duration::from_millis(50));
    let limits = ClientLimits { grpc_idle: idle, ..ClientLimits::default() };
    let (mut served, mut client) = connection(limits).await;
    client.write_all(&[1; Opening::BYTES]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut bytes = [0; Opening::BYTES];
    served.read_exact(&mut bytes).await.expect("what has come");
    let ended = timeout(Duration::from_secs(20), served.read(&mut bytes)).await.expect("an end");
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
}

#[tokio::test]
async fn a_connection_beyond_the_limit_is_refused_in_the_words_of_its_protocol() {
    let http = heard_beyond(PortProtocol::Http).await;
    assert!(
        http.starts_with("HTTP/1.1 503 ")
            && http.contains("1 connections are open")
            && http.contains("some_max"),
        "{http}"
    );
    let grpc = heard_beyond(PortProtocol::Grpc).await;
    assert!(grpc.as_bytes()[9 + 3] == 7 && grpc.contains("1 connections are open"), "{grpc:?}");
}
