// The part of the WebAssembly JavaScript interface that weir uses. The compiler declares it only together
// with the browser's globals, which server code must not see.

declare namespace WebAssembly {
  type ExportValue = ((...args: number[]) => number) | Memory | object;

  class Module {
    constructor(bytes: Uint8Array<ArrayBuffer>);
    static exports(module: Module): { name: string; kind: string }[];
    static imports(module: Module): { module: string; name: string; kind: string }[];
  }

  class Instance {
    constructor(module: Module, imports?: Record<string, Record<string, ExportValue>>);
    readonly exports: Readonly<Record<string, ExportValue>>;
  }

  interface MemoryDescriptor {
    /** Pages of 64 KiB. */
    readonly initial: number;
    readonly maximum?: number;
    readonly shared?: boolean;
  }

  class Memory {
    constructor(descriptor: MemoryDescriptor);
    /** A SharedArrayBuffer when the memory is shared; another object after each growth. */
    readonly buffer: ArrayBuffer;
    /** Returns the pages before; throws RangeError beyond the maximum. */
    grow(pages: number): number;
  }

  class CompileError extends Error {}
  class LinkError extends Error {}
  class RuntimeError extends Error {}
}
