// VirtualCluster messages → the requests of a virtual host that have stats of their own. The older form, a pattern and
// perhaps a method, becomes header matches.

import type { HeaderMatch, VirtualClusterSettings } from '../../snapshot/index.ts';
import { RequestMethod } from '../proto/generated/enums.ts';
import { enumName } from './enum-name.ts';
import type { FaultSink } from './fault-sink.ts';
import type { VirtualCluster } from './messages.ts';
import { convertHeaderMatchers } from './route-match.ts';
import { regexMatch } from './string-match.ts';

export function convertVirtualClusters(
  messages: readonly VirtualCluster[],
  at: string,
  faults: FaultSink,
): { readonly virtualClusters?: readonly VirtualClusterSettings[] } {
  if (messages.length === 0) return {};
  const virtualClusters = messages.map((message, index) => ({
    name: message.name,
    headers: matchesOf(message, `${at}[${index}]`, faults),
  }));
  return { virtualClusters };
}

function matchesOf(message: VirtualCluster, at: string, faults: FaultSink): readonly HeaderMatch[] {
  const { headers, pattern, method } = message;
  if (headers.length > 0) {
    if (pattern !== '') faults.error(`${at}.pattern`, 'cannot be given together with headers');
    if (method !== RequestMethod.METHOD_UNSPECIFIED) faults.error(`${at}.method`, 'needs a pattern');
    return convertHeaderMatchers(headers, `${at}.headers`, faults);
  }
  if (pattern === '') {
    faults.error(`${at}.headers`, 'must not be empty: they say which requests it counts');
    return [];
  }
  const path = regexMatch(pattern, `${at}.pattern`, faults);
  if (path === undefined) return [];
  const tests = [headerMatch(':path', path)];
  if (method !== RequestMethod.METHOD_UNSPECIFIED) {
    const value = enumName(RequestMethod, method);
    tests.push(headerMatch(':method', { kind: 'exact', value, ignoresCase: false }));
  }
  return tests;
}

function headerMatch(name: string, test: HeaderMatch['test']): HeaderMatch {
  return { name, test, isInverted: false, treatMissingAsEmpty: false };
}
