// How an extension takes part in the conversion of an HTTP connection manager.

import type { HttpFilterSettings, WholeStats } from '../../snapshot/index.ts';
import type { SupportTable } from '../support/verdict.ts';
import type { Conversion } from './conversion.ts';

/**
 * @param at path of its configuration, `…http_filters[0].typed_config`. @param name as http_filters calls it.
 * @param isOptional what of it this build lacks is left out with a warning.
 * @returns undefined when the filter has faults.
 */
export type ConvertHttpFilter = (
  message: object,
  at: string,
  conversion: Conversion,
  name: string,
  isOptional?: boolean,
) => HttpFilterSettings | undefined;

/** What an extension says of an HTTP filter to those who read configurations. */
export interface HttpFilterManifest {
  /** Rows for its message and for those in it that nothing else leads to. */
  readonly support: SupportTable;
  readonly convert: ConvertHttpFilter;
  /** Full names of the messages that its decision trees lead to. */
  readonly matcherActions?: readonly string[];
  /** What routes, virtual hosts and tables may say to the filter; absent where they can only turn it off. */
  readonly ofRoutes?: RouteFilterManifest;
}

export interface RouteFilterManifest {
  /** Full name of the message. */
  readonly type: string;
  readonly convert: ConvertRouteFilter;
  /** What settings have the filter count under whole names; nothing when absent. */
  readonly wholeStats?: (settings: object) => WholeStats;
  /** A field of virtual hosts and route actions that says the same, from before there was a map by filters. */
  readonly olderField?: { readonly name: 'cors'; readonly convert: ConvertRouteFilter };
}

/** @returns undefined when there are faults, 'off' for a filter that takes no part; else for the extension alone, anything that can be cloned. */
export type ConvertRouteFilter = (message: object, at: string, conversion: Conversion) => object | 'off' | undefined;

/** By the full name of the message that configures the filter. None of them is terminal: only the router is. */
export type HttpFilterManifests = Readonly<Record<string, HttpFilterManifest>>;
