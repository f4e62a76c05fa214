//! Compiles the kernels for GPUs to PTX, if the feature `cuda` is on.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "cuda")]
    compile_kernels();
}

#[cfg(feature = "cuda")]
fn compile_kernels() {
    println!("cargo::rerun-if-changed=src/gpu");
    let kernels = cudaforge::KernelBuilder::new()
        .source_files(["store", "rows", "tiles", "layers"].map(|name| format!("src/gpu/{name}.cu")))
        .watch(["src/gpu/cache.cuh", "src/gpu/elements.cuh"])
        .arg("-std=c++17")
        .arg("-O3");
    if let Err(error) = kernels.build_ptx() {
        println!("cargo::error=cannot compile the kernels in src/gpu: {error}");
    }
}
