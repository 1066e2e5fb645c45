// Module and ModulePerRoute messages → settings of filters of the user's own. The module is loaded here, too, so that what is wrong
// with it is known before anything is used.

import { errorMessage } from '../../../base/errors.ts';
import type { JsonObject } from '../../../base/json.ts';
import {
  type Conversion,
  type HttpFilterManifest,
  type MessageTypes,
  rejected,
  structToJson,
  supported,
  supportedWhole,
} from '../../../config/index.ts';
import { type Definition, findModule, loadDefinition } from '../../../filter-modules/definition.ts';
import type { FilterSource } from '../../../filter-modules/source.ts';
import type { ModuleSettings } from './settings.ts';

const MODULE = 'proxy.extensions.filters.http.module.v3.Module';
const PER_ROUTE = 'proxy.extensions.filters.http.module.v3.ModulePerRoute';

type ModuleMessage = MessageTypes[typeof MODULE];
type PerRouteMessage = MessageTypes[typeof PER_ROUTE];

/** What a program has given by name. */
export type GivenFilters = ReadonlyMap<string, FilterSource>;

const NOTHING_GIVEN: GivenFilters = new Map();

export function moduleManifest(given: GivenFilters = NOTHING_GIVEN): HttpFilterManifest {
  return {
    support: {
      [MODULE]: {
        otherwise: rejected(),
        fields: {
          module: supported('a path from the working directory, a file URL or a package'),
          config: supportedWhole(),
        },
      },
      [PER_ROUTE]: { otherwise: rejected(), fields: { config: supportedWhole() } },
    },
    convert(message, at, conversion, name) {
      const { module, config } = message as ModuleMessage;
      const source = sourceOf(module, name, given, at, conversion);
      const definition = source && loaded(source, `${at}.module`, conversion);
      if (definition === undefined) return undefined;
      const settings: ModuleSettings = {
        name,
        source: source!,
        config: config === null ? {} : structToJson(config),
        requestBody: definition.requestBody,
        responseBody: definition.responseBody,
      };
      check(() => definition.checkConfig?.(settings.config), `${at}.config`, conversion);
      return { name: 'filters.http.module', settings };
    },
    ofRoutes: {
      type: PER_ROUTE,
      convert(message): JsonObject {
        const { config } = message as PerRouteMessage;
        return config === null ? {} : structToJson(config);
      },
    },
  };
}

function sourceOf(
  module: string,
  name: string,
  given: GivenFilters,
  at: string,
  { faults }: Conversion,
): FilterSource | undefined {
  if (module === '') {
    const source = given.get(name);
    if (source === undefined) {
      faults.error(`${at}.module`, `is empty, and no filter called "${name}" was given to createProxy`);
    }
    return source;
  }
  try {
    return findModule(module);
  } catch (error) {
    faults.error(`${at}.module`, errorMessage(error));
    return undefined;
  }
}

function loaded(source: FilterSource, at: string, { faults }: Conversion): Definition | undefined {
  try {
    return loadDefinition(source);
  } catch (error) {
    faults.error(at, errorMessage(error));
    return undefined;
  }
}

function check(act: () => void, at: string, { faults }: Conversion): void {
  try {
    act();
  } catch (error) {
    faults.error(at, errorMessage(error));
  }
}
