// Configurations of header_to_metadata, set_metadata and basic_auth: what is refused by name, and in which words.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HeaderToMetadataSettings } from '../../../../src/extensions/filters.http/header_to_metadata/settings.ts';
import { faultTexts, type JsonObject, load } from '../../../support/bootstrap.ts';
import { filterFaults, filterSettings, withHttpFilter } from '../../../support/filter-config.ts';

const FROM_HEADERS = 'envoy.extensions.filters.http.header_to_metadata.v3.Config';
const FIXED = 'envoy.extensions.filters.http.set_metadata.v3.Config';
const AUTH = 'envoy.extensions.filters.http.basic_auth.v3.BasicAuth';
const DIGEST = `{SHA}${Buffer.alloc(20).toString('base64')}`;

test('rules that make metadata of headers are the same in both generations', () => {
  const V2 = 'envoy.config.filter.http.header_to_metadata.v2.Config';
  const fields = { request_rules: [{ header: 'X-A', on_header_present: { key: 'a', type: 'NUMBER' }, remove: true }] };
  const of = (type: string): HeaderToMetadataSettings =>
    filterSettings('envoy.filters.http.header_to_metadata', type, fields);
  assert.deepEqual(of(V2), of(FROM_HEADERS));
  assert.deepEqual(of(FROM_HEADERS).request[0]!.name, 'x-a');
});

test('rules that make metadata of headers are refused by the name of the field', () => {
  const present = { key: 'a' };
  const of = (rule: JsonObject, list = 'request_rules'): string[] =>
    filterFaults('header_to_metadata', FROM_HEADERS, { [list]: [rule] }).map((text) => text.replace(`${list}[0]`, ''));
  assert.deepEqual(of({ on_header_present: present }), [': needs header or cookie']);
  assert.deepEqual(of({ header: 'a', cookie: 'b', on_header_present: present }), [
    '.cookie: cannot be given together with header',
  ]);
  assert.deepEqual(of({ cookie: 'b', on_header_present: present }, 'response_rules'), [
    '.cookie: only requests have cookies',
  ]);
  assert.deepEqual(of({ cookie: 'b', on_header_present: present, remove: true }), [
    '.remove: a cookie cannot be taken out',
  ]);
  assert.deepEqual(of({ header: 'a' }), [': needs on_header_present or on_header_missing']);
  assert.deepEqual(of({ header: 'a', on_header_missing: present }), ['.on_header_missing.value: is empty']);
  assert.match(of({ header: 'a', on_header_present: {} })[0]!, /^\.on_header_present\.key: /);
  const both = { ...present, value: 'v', regex_value_rewrite: { pattern: { regex: 'a' }, substitution: 'b' } };
  assert.deepEqual(of({ header: 'a', on_header_present: both }), [
    '.on_header_present.regex_value_rewrite: cannot be given together with value',
  ]);
  const bad = { ...present, regex_value_rewrite: { pattern: { regex: '(' }, substitution: 'b' } };
  assert.match(of({ header: 'a', on_header_present: bad })[0]!, /^\.on_header_present\.regex_value_rewrite\.pattern/);
  assert.match(
    of({ header: 'a', on_header_present: { ...present, type: 'PROTOBUF_VALUE' } })[0]!,
    /type: .*PROTOBUF_VALUE/,
  );
  const balancer = {
    request_rules: [{ header: 'a', on_header_present: { ...present, metadata_namespace: 'envoy.lb' } }],
  };
  assert.deepEqual(filterFaults('header_to_metadata', FROM_HEADERS, balancer, 'warning'), []);
  const name = 'envoy.filters.http.header_to_metadata';
  const entry = { '@type': `type.googleapis.com/${FROM_HEADERS}` };
  const [fault] = faultTexts(load(withHttpFilter(name, FROM_HEADERS, {}, { [name]: entry })));
  assert.match(fault!, /typed_per_filter_config\[.*\]: needs request_rules or response_rules$/);
});

test('fixed metadata is refused by the name of the field', () => {
  const of = (fields: JsonObject): string[] => filterFaults('set_metadata', FIXED, fields);
  assert.deepEqual(of({ value: { a: 1 } }), ['metadata_namespace: is empty']);
  assert.deepEqual(of({ metadata: [{ metadata_namespace: 'a' }] }), ['metadata[0].value: must be set']);
  assert.match(of({ metadata: [{ value: {} }] })[0]!, /^metadata\[0\]\.metadata_namespace: /);
  const typed_value = { '@type': 'type.googleapis.com/google.protobuf.Duration', value: '1s' };
  assert.match(
    of({ metadata: [{ metadata_namespace: 'a', value: {}, typed_value }] })[0]!,
    /^metadata\[0\]\.typed_value: .*not supported/,
  );
});

test('users are refused by their lines, without what is in them', () => {
  const of = (inline_string: string, fields: JsonObject = {}): string[] =>
    filterFaults('basic_auth', AUTH, { users: { inline_string }, ...fields });
  assert.match(filterFaults('basic_auth', AUTH, {})[0]!, /^users: /);
  assert.deepEqual(of(`ada:${DIGEST}\nsecret`), ['users: line 2: is not of the form name:{SHA}digest']);
  assert.deepEqual(of(`:${DIGEST}`), ['users: line 1: is not of the form name:{SHA}digest']);
  assert.deepEqual(of('ada:$apr1$secret'), ['users: line 1: is not by {SHA}, as htpasswd -s writes it']);
  assert.deepEqual(of('ada:{SHA}secret'), ['users: line 1: has no digest of 20 bytes in base64']);
  assert.deepEqual(of(`ada:${DIGEST}\r\n#\r\nada:${DIGEST}`), ['users: line 3: names a user for the second time']);
  assert.deepEqual(of(`ada:${DIGEST}`, { forward_username_header: 'Host' }), [
    'forward_username_header: "Host" cannot be set here',
  ]);
  assert.match(
    filterFaults('basic_auth', AUTH, { users: { filename: '/nowhere' } })[0]!,
    /^users\.filename: cannot be read/,
  );
});
