import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { faultTexts, type JsonObject, load, mustLoad } from '../../../support/bootstrap.ts';

const AT = 'application_log_config.log_format';

function configured(log_format: JsonObject): JsonObject {
  return { application_log_config: { log_format } };
}

describe('application_log_config', () => {
  it('says how lines look, as text or as JSON in its own order', () => {
    assert.equal(mustLoad({}).logFormat, undefined);
    assert.equal(mustLoad({ application_log_config: {} }).logFormat, undefined);
    assert.equal(mustLoad(configured({ text_format: '[%l] %v %_' })).logFormat, '[%l] %v %_');
    const json_format = { z: '%j', level: '%l', at: { file: '%g', line: 1, is_ours: true }, rate: '100%%_' };
    assert.equal(mustLoad(configured({ json_format })).logFormat, JSON.stringify(json_format));
  });

  it('cannot be combined with the option', () => {
    const fault = `${AT}: cannot be combined with --log-format: only one of them can say how lines look`;
    assert.deepEqual(faultTexts(load(configured({ text_format: '%v' }), { hasLogFormat: true })), [fault]);
    assert.deepEqual(faultTexts(load({}, { hasLogFormat: true })), []);
  });

  for (const [text, flag] of [
    ['%v', '%v'],
    ['%_', '%_'],
    ['%-20!v', '%v'],
    ['%%%v', '%v'],
  ] as const) {
    it(`has no flag in JSON that JSON does not escape: ${text}`, () => {
      assert.deepEqual(faultTexts(load(configured({ json_format: { message: text } }))), [
        `${AT}.json_format: ${flag} cannot stand in JSON, where %j is the message`,
      ]);
    });
  }

  it('as JSON is warned of where all lines are escaped once more', () => {
    const bootstrap = configured({ json_format: { message: '%j' } });
    const warnings = (logFormatEscaped: boolean) => faultTexts(load(bootstrap, { logFormatEscaped }), 'warning');
    assert.deepEqual(warnings(false), []);
    assert.deepEqual(warnings(true), [
      `${AT}.json_format: with --log-format-escaped no line is JSON: its quotes are escaped, too`,
    ]);
    assert.deepEqual(faultTexts(load(configured({ text_format: '%v' }), { logFormatEscaped: true }), 'warning'), []);
  });

  it('is warned of where it has flags that are none', () => {
    const about = (log_format: JsonObject) => faultTexts(load(configured(log_format)), 'warning').join();
    assert.match(
      about({ text_format: '%l %Q %v' }),
      /^application_log_config\.log_format\.text_format: '%Q' is no flag /,
    );
    assert.match(
      about({ json_format: { '%Q': '%j' } }),
      /^application_log_config\.log_format\.json_format: '%Q' is no/,
    );
    assert.equal(about({ json_format: { level: '%l', message: '%j' } }), '');
  });

  it('wants one of the two', () => {
    assert.equal(faultTexts(load(configured({}))).length, 1);
  });
});
