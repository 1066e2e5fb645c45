// What RFC 9113 section 8 demands of requests' heads, and what an HTTP/1 peer could read in two ways, as a table: fields, and
// the fault or the head that they become.

import { BlockFlag } from '../../../src/wasm/http2.ts';
import type { Field } from '../../support/reference/hpack.ts';

export const GET: readonly Field[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':authority', 'a.example'],
  [':path', '/x'],
];
export const READ = ['GET /x', 'host: a.example'];

export const with_ = (...fields: Field[]): Field[] => [...GET, ...fields];
const without = (name: string): Field[] => GET.filter(([field]) => field !== name);
const changed = (name: string, value: string): Field[] =>
  GET.map(([field, old]): Field => [field, field === name ? value : old]);

/** [what, fields, fault or lines, flags] */
export const REQUEST_CASES: readonly (readonly [string, readonly Field[], string | readonly string[], number?])[] = [
  ['a plain request', GET, READ],
  ['pseudo fields in any order', [...GET].reverse(), READ],
  ['no method', without(':method'), 'pseudo_header_missing'],
  ['no path', without(':path'), 'pseudo_header_missing'],
  ['no scheme', without(':scheme'), 'pseudo_header_missing'],
  ['no authority and no Host', without(':authority'), 'host_missing'],
  ['Host in place of authority', [...without(':authority'), ['host', 'b']], ['GET /x', 'host: b']],
  ['Host twice', [...without(':authority'), ['host', 'b'], ['host', 'b']], 'host_repeated'],
  ['Host like the authority', with_(['host', 'A.example']), READ],
  ['Host of another name', with_(['host', 'b.example']), 'authority_and_host_differ'],
  ['Host that begins like the authority', with_(['host', 'a.exampl']), 'authority_and_host_differ'],
  ['a method twice', [...GET, [':method', 'GET']], 'pseudo_header_repeated'],
  ['a path twice', [...GET, [':path', '/x']], 'pseudo_header_repeated'],
  ['a pseudo field behind a field', with_(['a', 'b'], [':path', '/']), 'pseudo_header_late'],
  ['an unknown pseudo field', with_([':fish', 'x']), 'pseudo_header_unknown'],
  ['a colon alone', with_([':', 'x']), 'pseudo_header_unknown'],
  ['a pseudo field in capitals', with_([':Path', '/']), 'pseudo_header_unknown'],
  ['the status of a response', with_([':status', '200']), 'pseudo_header_unknown'],
  ['an empty method', changed(':method', ''), 'pseudo_header_empty'],
  ['an empty path', changed(':path', ''), 'pseudo_header_empty'],
  ['an empty authority', changed(':authority', ''), 'pseudo_header_empty'],
  ['a method with a space', changed(':method', 'GET /'), 'method_invalid'],
  ['a method with a line end', changed(':method', 'GET\r\n'), 'header_value_invalid'],
  ['a path with a space', changed(':path', '/ HTTP/1.1'), 'target_invalid'],
  ['a path with a line end', changed(':path', '/\r\nx: y'), 'header_value_invalid'],
  ['a path with a fragment', changed(':path', '/#x'), 'target_invalid'],
  ['a path with a byte above ASCII', changed(':path', '/\xe4'), 'target_invalid'],
  ['an absolute form for a path', changed(':path', 'http://b.example/'), 'path_invalid'],
  ['a path without a slash', changed(':path', 'x'), 'path_invalid'],
  ['an asterisk for GET', changed(':path', '*'), 'path_invalid'],
  [
    'an asterisk for OPTIONS',
    [[':method', 'OPTIONS'], ...changed(':path', '*').slice(1)],
    ['OPTIONS *', 'host: a.example'],
  ],
  ['an authority with user information', changed(':authority', 'me@a.example'), 'host_invalid'],
  ['an authority with a slash', changed(':authority', 'a.example/x'), 'host_invalid'],
  ['an authority with a comma', changed(':authority', 'a.example,b'), 'host_invalid'],
  ['an authority with a port', changed(':authority', '[::1]:443'), ['GET /x', 'host: [::1]:443']],
  ['the scheme https', changed(':scheme', 'https'), READ],
  ['another scheme', changed(':scheme', 'ftp'), 'scheme_invalid'],
  ['a scheme with a line end', changed(':scheme', 'http\n'), 'header_value_invalid'],
  ['a capital in a name', with_(['X-a', 'b']), 'header_name_upper_case'],
  ['a capital at the end of a name', with_(['x-bbbbbbbbbbbbbbbbbbbB', 'b']), 'header_name_upper_case'],
  ['an empty name', with_(['', 'b']), 'header_name_invalid'],
  ['a name with a space', with_(['a b', 'c']), 'header_name_invalid'],
  ['a name with a colon', with_(['a:b', 'c']), 'header_name_invalid'],
  ['a name with a zero byte', with_(['a\0', 'c']), 'header_name_invalid'],
  ['a name above ASCII', with_(['\xe4', 'c']), 'header_name_invalid'],
  ['a value with CR', with_(['a', 'b\rc']), 'header_value_invalid'],
  ['a value with LF', with_(['a', 'b\nc']), 'header_value_invalid'],
  ['a value with a zero byte', with_(['a', 'b\0c']), 'header_value_invalid'],
  ['a value with DEL', with_(['a', '\x7f']), 'header_value_invalid'],
  ['a value that begins with a space', with_(['a', ' b']), 'header_value_space'],
  ['a value that ends with a tab', with_(['a', 'b\t']), 'header_value_space'],
  ['a value above ASCII, with spaces within', with_(['a', 'b \xe4 c']), [...READ, 'a: b \xe4 c']],
  ['an empty value', with_(['a', '']), [...READ, 'a: ']],
  ['connection', with_(['connection', 'close']), 'connection_header_forbidden'],
  ['keep-alive', with_(['keep-alive', '1']), 'connection_header_forbidden'],
  ['proxy-connection', with_(['proxy-connection', 'close']), 'connection_header_forbidden'],
  ['transfer-encoding', with_(['transfer-encoding', 'chunked']), 'connection_header_forbidden'],
  ['upgrade', with_(['upgrade', 'websocket']), 'connection_header_forbidden'],
  ['te', with_(['te', 'gzip']), 'te_invalid'],
  ['te with more than trailers', with_(['te', 'trailers, gzip']), 'te_invalid'],
  ['te: trailers, which ends at this hop', with_(['te', 'trailers']), READ],
  [
    'crumbs of a cookie',
    with_(['cookie', 'a=1'], ['x', 'y'], ['cookie', 'b=2']),
    [...READ, 'x: y', 'cookie: a=1; b=2'],
  ],
  ['content of no length', with_(['content-length', '0']), [...READ, 'content-length: 0']],
  ['content that does not come', with_(['content-length', '5']), 'content_length_without_content'],
  ['a length that is no number', with_(['content-length', '+5']), 'content_length_invalid', 0],
  ['two lengths', with_(['content-length', '5'], ['content-length', '5']), 'content_length_repeated', 0],
  [
    'CONNECT',
    [
      [':method', 'CONNECT'],
      [':authority', 'a:1'],
    ],
    ['CONNECT a:1', 'host: a:1'],
    0,
  ],
  [
    'CONNECT without a port',
    [
      [':method', 'CONNECT'],
      [':authority', 'a'],
    ],
    'target_invalid',
    0,
  ],
  ['CONNECT without an authority', [[':method', 'CONNECT']], 'pseudo_header_missing', 0],
  [
    'CONNECT with a path',
    [
      [':method', 'CONNECT'],
      [':authority', 'a:1'],
      [':path', '/'],
    ],
    'pseudo_header_unknown',
    0,
  ],
  [
    'CONNECT with a length',
    [
      [':method', 'CONNECT'],
      [':authority', 'a:1'],
      ['content-length', '5'],
    ],
    'body_forbidden',
    0,
  ],
  ['a TRACE with content', [[':method', 'TRACE'], ...GET.slice(1)], 'body_forbidden', 0],
  [
    'extended CONNECT that was not announced',
    [[':method', 'CONNECT'], [':protocol', 'websocket'], ...GET.slice(1)],
    'pseudo_header_unknown',
    0,
  ],
  [
    'extended CONNECT, as the upgrade that it stands for',
    [[':method', 'CONNECT'], [':protocol', 'websocket'], ...GET.slice(1), ['sec-websocket-version', '13']],
    ['GET /x', 'host: a.example', 'sec-websocket-version: 13'],
    BlockFlag.CONNECT_PROTOCOL,
  ],
  [
    'extended CONNECT to a protocol that is no token',
    [[':method', 'CONNECT'], [':protocol', 'a, b'], ...GET.slice(1)],
    'protocol_invalid',
    BlockFlag.CONNECT_PROTOCOL,
  ],
  ['a protocol without CONNECT', [...GET, [':protocol', 'websocket']], 'protocol_invalid', BlockFlag.CONNECT_PROTOCOL],
];
