//! A worker for the queue `emails`: it runs until Ctrl-C or SIGTERM, and gives back what it cannot
//! finish.
//!
//! Start a server with `pinpriq serve`, put tasks with `pinpriq put emails ada@example.org`, and
//! run this with `cargo run --package pinpriq-client --example worker`.

#![expect(clippy::print_stdout, reason = "an example for people at a terminal")]

use std::time::Duration;

use pinpriq_client::{Client, Error, Failure, Happening, Job, Outcome, Worker, stop_signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let url = std::env::var("PINPRIQ_URL");
    let client = Client::connect(url.as_deref().unwrap_or("pinpriq://127.0.0.1:7251")).await?;
    let worker = Worker::new(&client)
        .job("emails", send)
        .concurrency(4)
        .ttr(Duration::from_secs(30))
        .on_event(|event| {
            if let Happening::Failed { failure, .. } = event.happening {
                println!("{} was not sent: {failure:?}", event.job.id);
            }
        });
    worker.run(stop_signal()).await
}

async fn send(job: Job) -> Outcome {
    let address = job.text()?;
    if !address.contains('@') {
        return Err(Failure::bury("this is no address"));
    }
    println!("to {address}, for the {}. time", job.attempts);
    Ok(())
}
