// The table of endpoints, and the kinds of parameters that its rows declare.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type AdminContext, endpoint } from '../../../src/admin/endpoint.ts';
import { ENDPOINTS } from '../../../src/admin/endpoints/index.ts';
import { choice, flag, type Parameter, pairs, parsed, text } from '../../../src/admin/parameter.ts';
import { AdminQuery } from '../../../src/admin/query.ts';
import { textResponse } from '../../../src/admin/response.ts';

const READ_ONLY = `/ /certs /clusters /config_dump /contention /heap_dump /help /hot_restart_version
  /hystrix_event_stream /init_dump /listeners /memory /ready /runtime /server_info /stats /stats/prometheus
  /stats/recentlookups`;
const MUTATING = `/cpuprofiler /drain_listeners /healthcheck/fail /healthcheck/ok /heapprofiler /logging /quitquitquit
  /reopen_logs /reset_counters /runtime_modify /stats/recentlookups/clear /stats/recentlookups/disable
  /stats/recentlookups/enable /tap`;

describe('the table of endpoints', () => {
  const paths = (mutates: boolean) => ENDPOINTS.filter((row) => row.mutates === mutates).map(({ path }) => path);

  it('has every path, and knows which of them change the server', () => {
    assert.deepEqual(paths(false).sort(), READ_ONLY.split(/\s+/));
    assert.deepEqual(paths(true).sort(), MUTATING.split(/\s+/));
  });

  it('explains every path and parameter in a few words on one line', () => {
    for (const { path, help, parameters } of ENDPOINTS) {
      for (const words of [help, ...parameters.map((parameter) => parameter.help)]) {
        assert.match(words, /^[^\n]{4,120}[^.\n]$/, path);
      }
    }
  });
});

const NO_CONTEXT = {} as AdminContext;

/** What a handler gets for a query, or the status and text of the refusal. */
async function read<Value>(parameter: Parameter<Value>, query: string): Promise<unknown> {
  let value: unknown;
  const row = endpoint({
    path: '/x',
    help: 'x',
    parameters: { p: parameter, other: flag('Another') },
    handle(_context, { p }) {
      value = p;
      return textResponse('done');
    },
  });
  const request = { query: new AdminQuery(query), headers: {}, isHead: false, body: undefined, endpoints: [row] };
  const { status, body } = await row.answer!(NO_CONTEXT, request);
  return body === 'done' ? value : `${status} ${String(body)}`;
}

describe('a parameter', () => {
  const format = choice({ help: 'Format', values: ['text', 'json'], aliases: { js: 'json' } });
  const strict = choice({ help: 'Format', values: ['text', 'json'], refusal: 'text or json' });
  const explained = choice({ help: 'Format', values: ['text'], refusal: (_context, given) => `no ${given}` });
  const answered = choice({ help: 'Format', values: ['text'], refusal: () => textResponse('not yet', 501) });
  const required = choice({ help: 'On or off', values: ['y', 'n'], isRequired: true, refusal: '?p=<y|n>\n' });
  const number = parsed('A number', (given) => (/^\d+$/.test(given) ? { value: Number(given) } : { error: 'digits' }));
  const cases: [name: string, parameter: Parameter<unknown>, query: string, value: unknown][] = [
    ['is a flag that is set by being there', flag('Flag'), 'p', true],
    ['is a flag whatever its value says', flag('Flag'), 'p=false', true],
    ['is a flag that is not set', flag('Flag'), 'other', false],
    ['is a text', text('Text'), 'p=a%20b', 'a b'],
    ['is no text when it is empty', text('Text'), 'p=', undefined],
    ['has its first value when given twice', text('Text'), 'p=a&p=b', 'a'],
    ['is a choice', format, 'p=json', 'json'],
    ['is a choice by another spelling', format, 'p=js', 'json'],
    ['is the first choice when not given', format, '', 'text'],
    ['is the first choice when empty', format, 'p=', 'text'],
    ['is the first choice when unknown and nothing refuses it', format, 'p=toString', 'text'],
    ['is refused when unknown', strict, 'p=xml', '400 text or json'],
    ['is refused with what was given', explained, 'p=xml', '400 no xml'],
    ['is refused with an answer of its own', answered, 'p=xml', '501 not yet'],
    ['is there when it must be', required, 'p=n', 'n'],
    ['is refused when it must be there and is not', required, '', '400 ?p=<y|n>\n'],
    ['is what a text means', number, 'p=17', 17],
    ['is refused when it means nothing', number, 'p=x', '400 digits'],
    ['means nothing when it is not given', number, '', undefined],
    [
      'is every pair without another name',
      pairs('<key>', 'Values'),
      'a=1&other&b=',
      [
        ['a', '1'],
        ['b', ''],
      ],
    ],
  ];
  for (const [name, parameter, query, value] of cases) {
    it(name, async () => assert.deepEqual(await read(parameter, query), value));
  }

  it('is refused in the order in which the row declares them', async () => {
    const row = endpoint({
      path: '/x',
      help: 'x',
      parameters: {
        a: choice({ help: 'A', values: ['1'], refusal: 'a' }),
        b: choice({ help: 'B', values: ['1'], refusal: 'b' }),
      },
      handle: () => textResponse('done'),
    });
    const request = { query: new AdminQuery('b=2&a=2'), headers: {}, isHead: false, body: undefined, endpoints: [row] };
    assert.equal((await row.answer!(NO_CONTEXT, request)).body, 'a');
  });
});
