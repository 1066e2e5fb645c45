// What a connection manager makes of replies of the proxy's own.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { load as parseYaml } from 'js-yaml';
import type { LocalReplySettings } from '../../../../src/snapshot/index.ts';
import {
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  withListeners,
} from '../../../support/bootstrap.ts';

const AT = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config.local_reply_config';
const NOT_CHECKS: JsonObject = { not_health_check_filter: {} };

function bootstrap(config: JsonObject): JsonObject {
  return withListeners(listenerWith([httpFilter({ local_reply_config: config })]));
}

function settingsOf(config: JsonObject): LocalReplySettings | undefined {
  const { filter } = mustLoad(bootstrap(config)).listeners[0]!.filterChains[0]!;
  assert.equal(filter.kind, 'http-connection-manager');
  return filter.localReplies;
}

function errorsOf(config: JsonObject): string[] {
  return faultTexts(load(bootstrap(config)));
}

describe('the replies of a listener', () => {
  it('are not touched where nothing is said of them', () => {
    assert.equal(settingsOf({}), undefined);
  });

  it('are changed by mappers in their order', () => {
    const mapper = {
      filter: NOT_CHECKS,
      status_code: 401,
      body: { inline_string: 'nö' },
      headers_to_add: [{ header: { key: 'X-Why', value: '%RESPONSE_CODE%' }, append_action: 'ADD_IF_ABSENT' }],
    };
    const settings = settingsOf({ mappers: [mapper, { filter: NOT_CHECKS }] })!;
    assert.deepEqual(settings.mappers, [
      {
        filter: { kind: 'not-health-check' },
        status: 401,
        body: new Uint8Array(Buffer.from('nö')),
        headerEdits: {
          remove: [],
          add: [
            {
              name: 'x-why',
              value: [{ operator: 'RESPONSE_CODE', args: [], maxLength: 0 }],
              action: 'add-if-absent',
              keepsEmptyValue: false,
            },
          ],
        },
        format: null,
      },
      { filter: { kind: 'not-health-check' }, status: null, body: null, headerEdits: null, format: null },
    ]);
    assert.equal(settings.format, null);
  });

  it('have the type of their format', () => {
    const text_format_source = { inline_string: 'why' };
    const formats: readonly JsonObject[] = [
      { text_format_source },
      { json_format: { why: '%LOCAL_REPLY_BODY%' } },
      { text_format_source, content_type: 'text/html; charset=UTF-8' },
      { json_format: {}, content_type: 'application/problem+json' },
    ];
    const types = formats.map((body_format) => settingsOf({ body_format })!.format!.contentType);
    assert.deepEqual(types, ['text/plain', 'application/json', 'text/html; charset=UTF-8', 'application/problem+json']);
    const override = settingsOf({ mappers: [{ filter: NOT_CHECKS, body_format_override: formats[1]! }] })!;
    assert.deepEqual(override.mappers[0]!.format, {
      line: {
        content: {
          kind: 'json',
          root: {
            kind: 'object',
            entries: [['why', { kind: 'text', segments: [{ operator: 'LOCAL_REPLY_BODY', args: [], maxLength: 0 }] }]],
          },
          isTyped: true,
        },
        omitEmptyValues: false,
      },
      contentType: 'application/json',
    });
  });

  it('are made as the document shows', () => {
    const document = readFileSync(path.join(import.meta.dirname, '../../../../docs/local-replies.md'), 'utf8');
    const yaml = /```yaml\n(.*?)```/s.exec(document)![1]!;
    mustLoad(withListeners(listenerWith([httpFilter(parseYaml(yaml) as JsonObject)])));
  });

  it('are refused by name where they cannot be made', () => {
    const broken = {
      mappers: [
        { filter: NOT_CHECKS, body: { filename: '/nowhere/at/all' } },
        { filter: { extension_filter: { name: 'cel' } } },
        { filter: NOT_CHECKS, headers_to_add: [{ header: { key: 'content-length', value: '1' } }] },
        { filter: NOT_CHECKS, body_format_override: { text_format_source: { inline_string: '%NOTHING%' } } },
        { filter: { header_filter: { header: { name: 'x', safe_regex_match: { regex: '(' } } } } },
      ],
      body_format: { text_format_source: { inline_string: '%REQ(' } },
    };
    const errors = errorsOf(broken).map((text) => text.slice(AT.length));
    const places = errors.map((text) => text.slice(0, text.indexOf(': ')));
    assert.deepEqual(
      places.toSorted(),
      [
        '.body_format.text_format_source',
        '.mappers[0].body.filename',
        '.mappers[1].filter.extension_filter',
        '.mappers[2].headers_to_add[0].header.key',
        '.mappers[3].body_format_override.text_format_source',
        '.mappers[4].filter.header_filter.header.safe_regex_match.regex',
      ],
      errors.join('\n'),
    );
    assert.match(errorsOf({ mappers: [{}] })[0]!, /mappers\[0\]\.filter/);
    assert.match(errorsOf({ mappers: [{ filter: NOT_CHECKS, status_code: 199 }] })[0]!, /status_code.*199/);
    assert.match(errorsOf({ mappers: [{ filter: NOT_CHECKS, status_code: 600 }] })[0]!, /status_code.*600/);
    assert.match(errorsOf({ body_format: {} })[0]!, /body_format/);
  });
});
