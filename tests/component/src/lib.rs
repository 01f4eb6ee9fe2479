//! A host of the component in Rust: what the tests and the benchmark share.
//!
//! `node tools/scripts/component.mjs` makes the component. wasmtime 48 is the release with long support. A process
//! compiles the component once, with the least effort.

pub mod calls;
#[path = "../../native/player.rs"]
mod player;
pub mod traces;

use std::{path::Path, sync::LazyLock};

use wasmtime::{
    Config, Engine, OptLevel, Store,
    component::{Component, Linker, ResourceAny},
};

wasmtime::component::bindgen!({ path: "../../crates/bindings/component/wit", world: "throttle" });

pub use exports::autothrottle::engine::throttling as wit;

/// The component, compiled.
pub struct Compiled {
    engine: Engine,
    component: Component,
}

impl Compiled {
    /// The component in `dist/`, for tests: compiled quickly, and once a process.
    pub fn load() -> &'static Self {
        static COMPILED: LazyLock<Compiled> = LazyLock::new(|| {
            Compiled::with(Config::new().cranelift_opt_level(OptLevel::None)).expect("dist/autothrottle.wasm")
        });
        &COMPILED
    }

    /// The same with settings of the compiler.
    pub fn with(config: &Config) -> wasmtime::Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/autothrottle.wasm");
        let engine = Engine::new(config)?;
        let component = Component::from_file(&engine, path)?;
        Ok(Self { engine, component })
    }

    /// Its imports.
    pub fn imports(&self) -> Vec<String> {
        let kind = self.component.component_type();
        kind.imports(&self.engine).map(|(name, _)| name.to_string()).collect()
    }

    /// Its exports.
    pub fn exports(&self) -> Vec<String> {
        let kind = self.component.component_type();
        kind.exports(&self.engine).map(|(name, _)| name.to_string()).collect()
    }

    /// An instance with memory of its own.
    pub fn instance(&self) -> wasmtime::Result<Instance> {
        let mut store = Store::new(&self.engine, ());
        let world = Throttle::instantiate(&mut store, &self.component, &Linker::new(&self.engine))?;
        Ok(Instance { store, world })
    }
}

/// An instance of the component.
pub struct Instance {
    pub store: Store<()>,
    pub world: Throttle,
}

impl Instance {
    /// An engine in it, or what is wrong with the options.
    pub fn engine(mut self, options: &str, seed: u64) -> wasmtime::Result<Result<Host, Vec<wit::Problem>>> {
        let api = self.world.autothrottle_engine_throttling().engine();
        let made = api.call_constructor(&mut self.store, options, seed)?;
        Ok(made.map(|engine| Host { instance: self, engine }))
    }
}

/// An engine inside the component. A trap is an error of each call.
pub struct Host {
    pub instance: Instance,
    pub engine: ResourceAny,
}

/// Calls a method of the engine: `call!(host, poll, now)`.
#[macro_export]
macro_rules! call {
    ($host:expr, $method:ident $(, $argument:expr)* $(,)?) => {{
        let host = &mut $host;
        let api = host.instance.world.autothrottle_engine_throttling().engine();
        api.$method(&mut host.instance.store, host.engine $(, $argument)*)
    }};
}

/// Problems as every host words them.
pub fn problems(whole: &str, problems: &[wit::Problem]) -> String {
    let lines = problems.iter().map(|problem| {
        let path = if problem.path.is_empty() { whole } else { &problem.path };
        format!("{path}: want {}; got {}", problem.want, problem.got)
    });
    lines.collect::<Vec<_>>().join("\n")
}
