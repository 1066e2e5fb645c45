// GET /runtime and POST /runtime_modify: runtime values, by layer.

import type { JsonObject } from '../../base/json.ts';
import { runtimeValueFault } from '../../base/runtime-values.ts';
import { endpoint } from '../endpoint.ts';
import { type Pairs, pairs } from '../parameter.ts';
import { jsonBody } from '../render/json.ts';
import { jsonResponse, textResponse } from '../response.ts';

export const RUNTIME = endpoint({
  path: '/runtime',
  help: 'Runtime values, by layer',
  handle({ runtime }) {
    const entries: Record<string, JsonObject> = Object.create(null);
    for (const { key, values, final } of runtime.entries()) entries[key] = { layer_values: values, final_value: final };
    return jsonResponse(jsonBody({ layers: runtime.layers(), entries }));
  },
});

const USAGE = `usage: /runtime_modify?key1=value1&key2=value2&keyN=valueN
       or send the parameters as form values
use an empty value to remove a previously added override`;

const REFUSALS = {
  'no-admin-layer': () => textResponse('No admin layer specified', 503),
  full: () => textResponse('the admin layer has no room for so many values\n', 400),
} as const;

export const RUNTIME_MODIFY = endpoint({
  path: '/runtime_modify',
  help: 'Change runtime values in the admin layer',
  mutates: true,
  parameters: {
    values: pairs('<key>', 'Value of a key; an empty one, also without `=`, removes what was set here before'),
  },
  handle({ commands, loggers }, { values }) {
    if (values.length === 0) return textResponse(USAGE, 400);
    const fault = faultOf(values);
    if (fault !== undefined) return textResponse(`${fault}\n`, 400);
    // Of a key that comes twice the first value counts.
    const changes = new Map(values.toReversed());
    const refusal = commands.modifyRuntime(changes);
    if (refusal !== undefined) return REFUSALS[refusal]();
    const log = loggers.get('admin');
    for (const [key, value] of changes)
      log.info(`change runtime value: ${quote(key)} is ${value === '' ? 'removed' : quote(value)}`);
    return textResponse('OK\n');
  },
});

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const UNFIT_FOR_KEY = /^$|[\x00-\x1f\x7f]/;

/** A value that could have no effect is more likely a slip than meant. */
function faultOf(values: Pairs): string | undefined {
  for (const [key, value] of values) {
    if (UNFIT_FOR_KEY.test(key)) return `${quote(key)} is no key: it is empty or has control characters`;
    const fault = value === '' ? undefined : runtimeValueFault(key, value);
    if (fault !== undefined) return `${quote(value)} ${fault}, as the key ${quote(key)} wants it`;
  }
  return undefined;
}

/** As long as a line may be. */
const SHOWN_CHARACTERS = 200;

function quote(text: string): string {
  return JSON.stringify(text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text);
}
