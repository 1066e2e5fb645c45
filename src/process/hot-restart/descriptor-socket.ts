// Where this process gets descriptors from its parent: datagrams, because a message with descriptors must be taken from a
// socket by a system call of its own, which Node's streams do not make. Each message bears the token of its question.

import { chmodSync, unlinkSync } from 'node:fs';
import { systemPath } from '../../base/address.ts';
import { removeStaleSocket } from '../../base/stale-socket.ts';
import type { SystemCalls } from '../../base/system-calls.ts';
import { bindError, type EpochPlace, isAbstract, socketName } from './domain-sockets.ts';

/** As many as go into one message. */
export const DESCRIPTORS_AT_A_TIME = 128;

export class DescriptorSocket {
  readonly #calls: SystemCalls;
  readonly #name: string;
  readonly #descriptor: number;
  /** By the token of a question; those of several may come before any of their answers is read. */
  readonly #expected = new Map<string, number[]>();

  /** @throws WeirError WEIR_HOT_RESTART when it cannot be bound. */
  static async bind(place: EpochPlace, calls: SystemCalls): Promise<DescriptorSocket> {
    const name = socketName('child', place);
    // Whoever has the name of the parent has this one as well.
    if (!isAbstract(name)) await removeStaleSocket(name);
    const descriptor = calls.bindDatagramSocket(systemPath(name));
    if (descriptor < 0) throw bindError('child', place, descriptor);
    if (!isAbstract(name)) chmodSync(name, place.socketMode);
    return new DescriptorSocket(calls, name, descriptor);
  }

  private constructor(calls: SystemCalls, name: string, descriptor: number) {
    this.#calls = calls;
    this.#name = name;
    this.#descriptor = descriptor;
  }

  /** Descriptors with this token are to be kept; all others are closed. */
  expect(token: string): void {
    this.#expected.set(token, []);
  }

  /** Those that have come with a token; they are the caller's. */
  take(token: string): readonly number[] {
    for (;;) {
      const message = this.#calls.receiveDescriptors(this.#descriptor);
      if (message === undefined) break;
      const expected = this.#expected.get(message.text);
      if (expected !== undefined) expected.push(...message.descriptors);
      else for (const descriptor of message.descriptors) this.#calls.close(descriptor);
    }
    const taken = this.#expected.get(token) ?? [];
    this.#expected.delete(token);
    return taken;
  }

  close(): void {
    this.#calls.close(this.#descriptor);
    if (!isAbstract(this.#name)) unlinkSync(this.#name);
  }
}

/** The other end. @returns how many messages have been sent. */
export function sendDescriptors(
  calls: SystemCalls,
  place: EpochPlace,
  token: string,
  descriptors: readonly number[],
): boolean {
  const socket = calls.openDatagramSocket(systemPath(socketName('child', place)));
  if (socket < 0) return false;
  let isSent = true;
  for (let from = 0; from < descriptors.length && isSent; from += DESCRIPTORS_AT_A_TIME) {
    const some = descriptors.slice(from, from + DESCRIPTORS_AT_A_TIME);
    isSent = calls.sendDescriptors(socket, token, some) === 0;
  }
  calls.close(socket);
  return isSent;
}
