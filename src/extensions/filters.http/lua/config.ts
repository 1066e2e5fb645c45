// Lua and LuaPerRoute messages. No script runs here: one without any statement, as control planes write it where routes may bring
// others, does nothing, and is let in with a warning. All others are refused with what to use in their place.

import {
  type Conversion,
  describeLacking,
  findLacking,
  type HttpFilterManifest,
  type MessageTypes,
  readDataSource,
  rejected,
  supported,
  supportedWhole,
} from '../../../config/index.ts';

const LUA = 'proxy.extensions.filters.http.lua.v3.Lua';
const PER_ROUTE = 'proxy.extensions.filters.http.lua.v3.LuaPerRoute';
/** White space, semicolons, and comments: long ones between brackets of the same level, others to the end of their line. */
const NO_STATEMENT = /^(?:[\s;]|--\[(=*)\[[\s\S]*?\]\1\]|--(?!\[=*\[)[^\n]*)*/;
const ONLY_EMPTY = 'without a statement, which does nothing';
const NOTHING_READS_IT = supportedWhole('of scripts, and none runs');

type LuaMessage = MessageTypes[typeof LUA];
type PerRouteMessage = MessageTypes[typeof PER_ROUTE];

export const LUA_MANIFEST: HttpFilterManifest = {
  support: {
    [LUA]: {
      otherwise: rejected(),
      fields: {
        inline_code: supported(ONLY_EMPTY),
        source_codes: supported(ONLY_EMPTY),
        default_source_code: supported(ONLY_EMPTY),
        stat_prefix: NOTHING_READS_IT,
        clear_route_cache: NOTHING_READS_IT,
      },
    },
    [PER_ROUTE]: {
      otherwise: rejected(),
      fields: {
        disabled: supported(),
        name: supported('of source_codes, which have no statement'),
        source_code: supported(ONLY_EMPTY),
        filter_context: NOTHING_READS_IT,
      },
    },
  },
  convert(message, at, conversion, name, isOptional = false) {
    const { faults } = conversion;
    const script = scriptIn(message as LuaMessage, at, conversion);
    if (script === undefined) {
      faults.warning(at, 'has no statement in Lua: the filter does nothing');
      return { name: 'filters.http.lua', settings: null };
    }
    const text = `${describeLacking(findLacking(LUA)!, LUA, name)}`;
    if (isOptional) faults.warning(at, `${text}; it is left out, being optional`);
    else faults.error(script, text);
    return undefined;
  },
  ofRoutes: {
    type: PER_ROUTE,
    convert(message, at, conversion) {
      const { override, source_code: code } = message as PerRouteMessage;
      if (override === 'disabled') return 'off';
      if (override === 'source_code' && hasStatement(textOf(code, `${at}.source_code`, conversion))) {
        conversion.faults.error(`${at}.source_code`, describeLacking(findLacking(LUA)!, PER_ROUTE));
      }
      return {};
    },
  },
};

/** Whether a script does anything. @param script as byte text. */
export function hasStatement(script: string): boolean {
  return NO_STATEMENT.exec(script)![0].length < script.length;
}

/** @returns the path of the first script that would do something. */
function scriptIn(message: LuaMessage, at: string, conversion: Conversion): string | undefined {
  if (hasStatement(message.inline_code)) return `${at}.inline_code`;
  const sources = [
    ['default_source_code', message.default_source_code] as const,
    ...Object.entries(message.source_codes).map(([key, code]) => [`source_codes["${key}"]`, code] as const),
  ];
  for (const [field, code] of sources) {
    const place = `${at}.${field}`;
    if (hasStatement(textOf(code, place, conversion))) return place;
  }
  return undefined;
}

function textOf(code: LuaMessage['default_source_code'], at: string, conversion: Conversion): string {
  return Buffer.from(readDataSource(code, at, conversion)).toString('latin1');
}
