//! The program that attacks ports of a running node: `hostile --attack flood --clients 200
//! 127.0.0.1:7432`.
//!
//! The program prints `begun` when as many connections as clients have been made. It continues
//! until the end of its input, or for `--seconds`, and then prints the number of its connections.
#![allow(clippy::disallowed_methods, reason = "a tool that runs for a real time")]

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use tests::hostile::{Attack, run};
use tokio::io::AsyncReadExt;

#[derive(Parser)]
struct Args {
    /// Kind of attack
    #[arg(long)]
    attack: Attack,
    /// Clients at once
    #[arg(long, default_value_t = 20)]
    clients: usize,
    /// Time of the attack in seconds; without it, the attack ends with the input
    #[arg(long)]
    seconds: Option<u64>,
    /// Ports to attack
    #[arg(required = true, value_name = "HOST:PORT")]
    ports: Vec<SocketAddr>,
}

#[tokio::main]
async fn main() {
    let args = Args::parse();
    let end = async {
        match args.seconds {
            Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
            None => {
                let _ended = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
            }
        }
    };
    let begun = || println!("begun");
    println!("{}", run(args.attack, &args.ports, args.clients, begun, end).await);
}
