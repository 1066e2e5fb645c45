// What listings tell of the places that resources come from: files and management servers, what has come last of each type, and what
// was refused of it. Main thread.

import type { Clock } from '../../base/clock.ts';

export interface SourceReport {
  readonly kind: 'file' | 'stream' | 'polls';
  /** Its path; of a server the cluster that is spoken to, or would be next. */
  readonly name: string;
  /** There is a stream; the last question was answered; the file could be read. */
  readonly isConnected: boolean;
  /** Since when that is so, in milliseconds since the Unix epoch. */
  readonly sinceMs: number;
  /** Who the server says it is; empty where it does not. */
  readonly identifier: string;
  /** What is wrong now; empty for nothing. */
  readonly complaint: string;
  /** Types of resources that have come and that nobody has asked for. */
  readonly unaskedTypes: readonly string[];
  readonly types: readonly TypeReport[];
}

export interface TypeReport {
  /** Full name of the message. */
  readonly typeName: string;
  /** How many names are wanted; null for all there are. */
  readonly wanted: number | null;
  /** The last response of which nothing was refused; null before it. */
  readonly accepted: { readonly version: string; readonly atMs: number } | null;
  /** The last of which something was; null without one. */
  readonly refused: { readonly version: string; readonly atMs: number; readonly reasons: string } | null;
  /** Resources of the last response whose names nobody has asked for. */
  readonly unasked: number;
}

/** Of the reasons of a refusal. */
const LONGEST_REASONS = 2_000;
/** Of types that nobody has asked for. */
const MOST_TYPES = 8;

/** What has come of one type. */
export class TypeRecord {
  readonly #clock: Clock;
  #accepted: TypeReport['accepted'] = null;
  #refused: TypeReport['refused'] = null;
  unasked = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param refusals why some of it is refused, one reason each. */
  took(version: string, refusals: readonly string[]): void {
    const atMs = this.#clock.wallMs();
    if (refusals.length === 0) this.#accepted = { version, atMs };
    else this.#refused = { version, atMs, reasons: refusals.join('\n').slice(0, LONGEST_REASONS) };
  }

  report(typeName: string, wanted: number | null): TypeReport {
    return { typeName, wanted, accepted: this.#accepted, refused: this.#refused, unasked: this.unasked };
  }
}

/** Whether there is anybody, since when, and who. */
export class ConnectionRecord {
  readonly #clock: Clock;
  readonly #unaskedTypes = new Set<string>();
  #isConnected = false;
  #sinceMs: number;
  #identifier = '';

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.wallMs();
  }

  connected(isConnected: boolean): void {
    if (isConnected === this.#isConnected) return;
    this.#isConnected = isConnected;
    this.#sinceMs = this.#clock.wallMs();
  }

  identified(name: string): void {
    if (name !== '') this.#identifier = name;
  }

  /** Nobody has asked for resources of this type. */
  unasked(typeUrl: string): void {
    if (this.#unaskedTypes.size < MOST_TYPES) this.#unaskedTypes.add(typeUrl);
  }

  report(): Pick<SourceReport, 'isConnected' | 'sinceMs' | 'identifier' | 'unaskedTypes'> {
    return {
      isConnected: this.#isConnected,
      sinceMs: this.#sinceMs,
      identifier: this.#identifier,
      unaskedTypes: [...this.#unaskedTypes],
    };
  }
}
