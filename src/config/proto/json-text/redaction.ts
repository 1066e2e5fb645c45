// What of a configuration is not shown to anybody who may only look: keys, passwords, tokens. Fields say it of themselves
// (proxy.sensitive); free-form JSON and headers are judged by their names, rather once too often.

import type { JsonObject, JsonValue } from '../../../base/json.ts';

/** Stands for a text that is not shown. */
export const REDACTED = '[redacted]';

/** What a name of free-form JSON may end with, without case, dashes and underscores. */
const SENSITIVE_NAME =
  /(?:password|passwd|passphrase|secrets?|tokens?|privatekey|apikey|accesskey|secretkey|jsonkey|hmackey|ticketkeys|pkcs12|credentials?|authorization)$/;

const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
]);
const CREDENTIAL_HEADER = /(?:^|-)(?:token|secret|password|api-?key)$/;

/** Whether what free-form JSON has under the name is not to be shown. */
export function isSensitiveName(name: string): boolean {
  return SENSITIVE_NAME.test(name.replace(/[-_. ]/g, '').toLowerCase());
}

/** Whether a header's value proves who somebody is. */
export function isCredentialHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return CREDENTIAL_HEADERS.has(lower) || CREDENTIAL_HEADER.test(lower);
}

/** Free-form JSON as it is shown. */
export function redactedJson(json: JsonObject): JsonObject {
  const entries = Object.entries(json).map(([name, value]) => [name, redactedValue(value, isSensitiveName(name))]);
  return Object.fromEntries(entries) as JsonObject;
}

function redactedValue(value: JsonValue, isHidden: boolean): JsonValue {
  if (value === null) return null;
  if (Array.isArray(value)) return value.map((item: JsonValue) => redactedValue(item, isHidden));
  if (typeof value !== 'object') return isHidden ? REDACTED : value;
  if (!isHidden) return redactedJson(value as JsonObject);
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, redactedValue(inner as JsonValue, true)]),
  );
}
