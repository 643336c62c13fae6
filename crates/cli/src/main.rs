//! The `ocelli` command. Text that people read is made here; training itself never prints.
//!
//! Exit codes: 0 done (also after Ctrl-C, once the run is saved), 1 something went wrong and was said, 2 the
//! command line could not be understood.

mod args;
mod commands;
mod console;
mod filesize;
mod finish;
mod hydra;
mod output;
mod panics;
mod shown;
mod terminal;

use args::{Args, Bench, Command, Data};
use std::process::ExitCode;

fn main() -> ExitCode {
    panics::install();
    filesize::install();
    let args = Args::read();
    let done = match args.command {
        Command::Train(train) => commands::train(&train),
        Command::Caption(caption) => commands::caption(&caption),
        Command::Data(Data::Check(check)) => commands::check(&check),
        Command::Data(Data::Show(show)) => commands::show(&show),
        Command::Data(Data::Prepare(prepare)) => commands::prepare(&prepare),
        Command::Eval(eval) => commands::eval(&eval),
        Command::Export(export) => commands::export(&export),
        Command::Explain(explain) => commands::explain(&explain),
        Command::Doctor { json } => commands::doctor(json),
        Command::Bench(Bench::Step(step)) => commands::bench_step(&step),
        Command::Bench(Bench::Data(data)) => commands::bench_data(&data),
        Command::Bench(Bench::Ladder(ladder)) => commands::bench_ladder(&ladder),
        Command::Config(config) => commands::config(&config),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            ExitCode::FAILURE
        }
    }
}
