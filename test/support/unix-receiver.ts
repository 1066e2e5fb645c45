// A receiver of datagrams at a unix socket, by system calls: Node has none.

import { dlopen, getRawPointer } from 'node:ffi';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { eventually } from './eventually.ts';

const AF_UNIX = 1;
/** SOCK_DGRAM with SOCK_NONBLOCK and SOCK_CLOEXEC. */
const DATAGRAM = 0x80802;
const ADDRESS_BYTES = 110;
const LARGEST_BYTES = 65_536;

const { functions: libc } = dlopen(null, {
  socket: { arguments: ['i32', 'i32', 'i32'], return: 'i32' },
  bind: { arguments: ['i32', 'pointer', 'u32'], return: 'i32' },
  recv: { arguments: ['i32', 'pointer', 'u64', 'i32'], return: 'i64' },
  close: { arguments: ['i32'], return: 'i32' },
});

export class UnixReceiver implements AsyncDisposable {
  readonly path: string;
  readonly datagrams: string[] = [];
  readonly #descriptor: number;
  readonly #isDeaf: boolean;
  readonly #buffer = Buffer.alloc(LARGEST_BYTES);
  #isStopped = false;

  /** In a folder of its own. */
  static freshPath(): string {
    return path.join(mkdtempSync(path.join(tmpdir(), 'weir-datagrams-')), 'socket');
  }

  /** @param isDeaf takes as many datagrams as fit, and reads none. */
  static open(socketPath = UnixReceiver.freshPath(), { isDeaf = false } = {}): Promise<UnixReceiver> {
    const address = Buffer.alloc(ADDRESS_BYTES);
    address.writeUInt16LE(AF_UNIX, 0);
    address.write(socketPath, 2);
    const descriptor = libc.socket(AF_UNIX, DATAGRAM, 0);
    if (libc.bind(descriptor, getRawPointer(address), ADDRESS_BYTES) !== 0)
      throw new Error(`cannot bind ${socketPath}`);
    return Promise.resolve(new UnixReceiver(socketPath, descriptor, isDeaf));
  }

  private constructor(socketPath: string, descriptor: number, isDeaf: boolean) {
    this.path = socketPath;
    this.#descriptor = descriptor;
    this.#isDeaf = isDeaf;
  }

  /** Resolves when so many have come. */
  async until(count: number): Promise<void> {
    await eventually(() => this.#read() >= count, `${count} datagrams`);
  }

  /** Nobody is at the path any more. */
  stop(): Promise<void> {
    if (!this.#isStopped) libc.close(this.#descriptor);
    this.#isStopped = true;
    rmSync(path.dirname(this.path), { recursive: true, force: true });
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #read(): number {
    while (!this.#isDeaf) {
      const size = Number(libc.recv(this.#descriptor, getRawPointer(this.#buffer), BigInt(LARGEST_BYTES), 0));
      if (size < 0) break;
      this.datagrams.push(this.#buffer.toString('utf8', 0, size));
    }
    return this.datagrams.length;
  }
}
