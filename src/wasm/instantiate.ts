// The one place that reads, compiles and instantiates WASM modules. Any thread: main compiles once and
// posts the compiled module, every thread instantiates it over the memory it is given.

import { readFileSync } from 'node:fs';
import { instantiateSync } from '@assemblyscript/loader';
import { errorMessage, WeirError } from '../base/errors.ts';
import { buildOutput } from '../base/package-root.ts';

/** The modules of asconfig.json. */
export type WasmModuleName = 'stats' | 'lb' | 'http1' | 'http1-scalar' | 'http2' | 'http2-scalar';

/** What every module exports beside its own functions. */
export interface WasmExports {
  /** LAYOUT_VERSION of the layout file that the module was compiled with. */
  layoutVersion(): number;
}

/**
 * Reads build/wasm/<name>.wasm and compiles it; costs milliseconds, so once per process.
 * @throws WeirError WEIR_WASM_MISSING when the build output cannot be read, WEIR_WASM_INVALID when it is no module.
 */
export function compileModule(name: WasmModuleName): WebAssembly.Module {
  const file = buildOutput(`wasm/${name}.wasm`);
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = readFileSync(file);
  } catch (cause) {
    throw new WeirError('WEIR_WASM_MISSING', `cannot read ${file}: build the WASM modules first`, { cause });
  }
  try {
    return new WebAssembly.Module(bytes);
  } catch (cause) {
    throw new WeirError('WEIR_WASM_INVALID', `${file} is not a WASM module: ${errorMessage(cause)}`, { cause });
  }
}

/**
 * Instantiates a compiled module over `memory`, its only import. The raw exports are handed out: they take
 * and give numbers, so u32 results arrive signed and the facade adds `>>> 0`.
 * @param expectedLayout  LAYOUT_VERSION of the layout file that the facade was written against.
 * @throws WeirError WEIR_WASM_LAYOUT when the binary is older or newer than this source.
 */
export function instantiateModule<Exports extends WasmExports>(
  name: WasmModuleName,
  module: WebAssembly.Module,
  memory: WebAssembly.Memory,
  expectedLayout: number,
): Exports {
  const { instance } = instantiateSync(module, { env: { memory } });
  // The compiler knows nothing of a binary; a test compares each facade's interface with the exports.
  const exports = instance.exports as unknown as Exports;
  const version = exports.layoutVersion();
  if (version !== expectedLayout) {
    throw new WeirError(
      'WEIR_WASM_LAYOUT',
      `WASM module ${name} was built for memory layout ${version}, this version needs ${expectedLayout}: build the WASM modules again`,
    );
  }
  return exports;
}
