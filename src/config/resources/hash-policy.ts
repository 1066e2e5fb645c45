// RouteAction.HashPolicy messages → what a request is hashed by.

import type { HashCookie, HashInput, HashPolicy } from '../../snapshot/index.ts';
import type { FaultSink } from './fault-sink.ts';
import type { HashPolicyMessage } from './messages.ts';
import { convertSubstitution } from './string-match.ts';
import { durationMs } from './units.ts';

/** Policies that never yield a hash in this build are left out. */
export function convertHashPolicies(
  messages: readonly HashPolicyMessage[],
  at: string,
  faults: FaultSink,
): readonly HashPolicy[] {
  return messages.flatMap((message, index) => {
    const input = convertInput(message, `${at}[${index}]`, faults);
    return input === undefined ? [] : [{ ...input, isTerminal: message.terminal }];
  });
}

function convertInput(message: HashPolicyMessage, at: string, faults: FaultSink): HashInput | undefined {
  const { header, cookie, query_parameter, connection_properties, filter_state } = message;
  if (header !== null) {
    const { header_name, regex_rewrite } = header;
    const rewrite =
      regex_rewrite === null ? undefined : convertSubstitution(regex_rewrite, `${at}.header.regex_rewrite`, faults);
    return { kind: 'header', name: header_name.toLowerCase(), rewrite: rewrite ?? null };
  }
  if (cookie !== null) return { kind: 'cookie', ...convertCookie(cookie, `${at}.cookie`, faults) };
  if (query_parameter !== null) return { kind: 'query-parameter', name: query_parameter.name };
  if (filter_state !== null) return { kind: 'filter-state', key: filter_state.key };
  return connection_properties?.source_ip ? { kind: 'source-ip' } : undefined;
}

/** @param at path of the message. */
export function convertCookie(
  message: NonNullable<HashPolicyMessage['cookie']>,
  at: string,
  faults: FaultSink,
): HashCookie {
  const { name, ttl, path, attributes } = message;
  const cookie = {
    name,
    ttlSeconds: ttl === null ? null : Math.trunc(durationMs(ttl) / 1000),
    path,
    attributes: attributes.map((each) => ({ name: each.name, value: each.value })),
  };
  const parts: readonly (readonly [at: string, text: string])[] = [
    [`${at}.name`, name],
    [`${at}.path`, path],
    ...attributes.flatMap((each, index): [string, string][] => [
      [`${at}.attributes[${index}].name`, each.name],
      [`${at}.attributes[${index}].value`, each.value],
    ]),
  ];
  for (const [partAt, text] of parts) {
    if (!UNSAFE_IN_COOKIE.test(text)) continue;
    faults.error(partAt, `${JSON.stringify(text)} holds characters that would end a part of the cookie`);
  }
  return cookie;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not come in.
const UNSAFE_IN_COOKIE = /[\x00-\x1f\x7f;]/;
