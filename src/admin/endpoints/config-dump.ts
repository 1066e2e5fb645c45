// GET /config_dump: the configuration in use.

import { type CompiledRegex, compileRegex } from '../../base/regex.ts';
import { configDumps } from '../config-dump/dumps.ts';
import { select } from '../config-dump/selection.ts';
import { endpoint } from '../endpoint.ts';
import { flag, text } from '../parameter.ts';
import { configDumpJson } from '../render/config-dump.ts';
import { type AdminResponse, jsonResponse } from '../response.ts';

/** As refusals of this endpoint always were. */
const PLAIN = 'text/plain';
const NO_NAME = { regex: undefined, error: undefined };

export const CONFIG_DUMP = endpoint({
  path: '/config_dump',
  help: 'Configuration in use, secrets left out',
  parameters: {
    resource: text('Show only this repeated field of a dump'),
    mask: text('Show only these fields, comma separated'),
    name_regex: text('Show only resources whose whole name matches (RE2 syntax)'),
    include_eds: flag('Show endpoints too'),
  },
  handle({ config }, { resource, mask, name_regex: pattern, include_eds: showsEndpoints }) {
    const { regex: name, error } = pattern === undefined ? NO_NAME : compileWhole(pattern);
    if (error !== undefined) return refused(400, `Error while parsing name_regex from ${pattern}: ${error}`);
    const selection = select(configDumps(config, showsEndpoints), { resource, mask, name });
    return selection.kind === 'refusal'
      ? refused(selection.status, selection.text)
      : jsonResponse(configDumpJson(selection));
  },
});

/** What is complete only with what is put around it is an error, too. */
function compileWhole(pattern: string): CompiledRegex {
  const { error } = compileRegex(pattern);
  return error === undefined ? compileRegex(`^(?:${pattern})$`) : { error };
}

function refused(status: number, body: string): AdminResponse {
  return { status, contentType: PLAIN, body };
}
