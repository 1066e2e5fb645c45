// What the rate limit service is asked, and what it answers: messages of v2 and v3 alike.

import { utf8Bytes } from '../../../base/byte-text.ts';
import type { JsonObject } from '../../../base/json.ts';
import { type FieldReader, MessageWriter, readMessage } from '../grpc/wire.ts';
import type { OwnLimit } from '../rate-limit-descriptors.ts';

/** Of byte text. */
type Pair = readonly [name: string, value: string];

export interface Asked {
  readonly entries: readonly Pair[];
  readonly limit: OwnLimit | null;
  /** Null: nothing is said. */
  readonly hits: number | null;
}

export interface Limit {
  readonly requests: number;
  /** 0 where the unit is not known. */
  readonly windowSeconds: number;
  /** Byte text. */
  readonly name: string;
}

/** Of one descriptor. */
export interface LimitStatus {
  /** Null where the service has none. */
  readonly limit: Limit | null;
  readonly remaining: number;
  readonly secondsToReset: number;
}

export interface LimitAnswer {
  readonly isOverLimit: boolean;
  /** In the order of the descriptors, if there are as many. */
  readonly statuses: readonly LimitStatus[];
  /** Names are in lower case. */
  readonly responseFields: readonly Pair[];
  readonly requestFields: readonly Pair[];
  /** Of a refusal. */
  readonly body: Buffer;
  readonly metadata: JsonObject | null;
}

const OVER_LIMIT = 2;
/** By the numbers of the units. */
const WINDOW_SECONDS: readonly number[] = [0, 1, 60, 3600, 86_400, 30 * 86_400, 365 * 86_400];

export function encodeLimitRequest(domain: string, descriptors: readonly Asked[]): Buffer {
  const writer = new MessageWriter();
  writer.text(1, domain);
  for (const { entries, limit, hits } of descriptors) {
    writer.message(2, (descriptor) => {
      for (const [key, value] of entries) {
        descriptor.message(1, (entry) => {
          entry.byteText(1, key);
          entry.byteText(2, value);
        });
      }
      if (limit !== null) {
        descriptor.message(2, (message) => {
          message.integer(1, limit.requests);
          message.integer(2, limit.unit);
        });
      }
      // A number that is wrapped says that it is 0, too.
      if (hits !== null) descriptor.message(3, (number) => number.integer(1, hits));
    });
  }
  return writer.finish();
}

/** @throws Error for bytes that are no such message. */
export function decodeLimitResponse(bytes: Buffer): LimitAnswer {
  let code = 0;
  let body: Buffer = Buffer.alloc(0);
  let metadata: JsonObject | null = null;
  const statuses: LimitStatus[] = [];
  const responseFields: Pair[] = [];
  const requestFields: Pair[] = [];
  readMessage(bytes, (field, reader) => {
    if (field === 1) code = reader.integer();
    else if (field === 2) statuses.push(readStatus(reader));
    else if (field === 3) responseFields.push(readHeader(reader));
    else if (field === 4) requestFields.push(readHeader(reader));
    else if (field === 5) body = reader.bytes();
    else if (field === 6) metadata = reader.struct();
    else return false;
    return true;
  });
  return { isOverLimit: code === OVER_LIMIT, statuses, responseFields, requestFields, body, metadata };
}

function readStatus(reader: FieldReader): LimitStatus {
  let limit: Limit | null = null;
  let remaining = 0;
  let secondsToReset = 0;
  reader.message((field) => {
    if (field === 2) limit = readLimit(reader);
    else if (field === 3) remaining = reader.integer();
    else if (field === 4) {
      reader.message((part) => {
        if (part !== 1) return false;
        secondsToReset = reader.integer();
        return true;
      });
    } else return false;
    return true;
  });
  return { limit, remaining, secondsToReset };
}

function readLimit(reader: FieldReader): Limit {
  let requests = 0;
  let windowSeconds = 0;
  let name = '';
  reader.message((field) => {
    if (field === 1) requests = reader.integer();
    else if (field === 2) windowSeconds = WINDOW_SECONDS[reader.integer()] ?? 0;
    else if (field === 3) name = utf8Bytes(reader.text());
    else return false;
    return true;
  });
  return { requests, windowSeconds, name };
}

/** A HeaderValue. */
function readHeader(reader: FieldReader): Pair {
  let name = '';
  let value = '';
  reader.message((field) => {
    if (field === 1) name = utf8Bytes(reader.text()).toLowerCase();
    else if (field === 2 || field === 3) value = reader.bytes().toString('latin1') || value;
    else return false;
    return true;
  });
  return [name, value];
}

/**
 * The headers of draft-polli-ratelimit-headers-03: of the limit that is nearest, and all limits with their windows.
 * @returns none where no descriptor has a limit.
 */
export function limitFields(statuses: readonly LimitStatus[]): readonly Pair[] {
  let nearest: LimitStatus | null = null;
  let policy = '';
  for (const status of statuses) {
    const { limit, remaining } = status;
    if (limit === null) continue;
    if (nearest === null || remaining < nearest.remaining) nearest = status;
    if (limit.windowSeconds === 0) continue;
    const name = limit.name === '' ? '' : `;name="${limit.name.replaceAll(/[\\"]/g, '\\$&')}"`;
    policy += `, ${limit.requests};w=${limit.windowSeconds}${name}`;
  }
  if (nearest === null) return [];
  return [
    ['x-ratelimit-limit', `${nearest.limit!.requests}${policy}`],
    ['x-ratelimit-remaining', String(nearest.remaining)],
    ['x-ratelimit-reset', String(nearest.secondsToReset)],
  ];
}
