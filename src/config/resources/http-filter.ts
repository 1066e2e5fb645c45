// How an extension takes part in the conversion of an HTTP connection manager.

import type { HttpFilterSettings } from '../../snapshot/index.ts';
import type { SupportTable } from '../support/verdict.ts';
import type { Conversion } from './conversion.ts';

/** @returns undefined when the filter has faults. @param at path of its configuration, `…http_filters[0].typed_config`. */
export type ConvertHttpFilter = (message: object, at: string, conversion: Conversion) => HttpFilterSettings | undefined;

/** What an extension says of an HTTP filter to those who read configurations. */
export interface HttpFilterManifest {
  /** Rows for its message and for those in it that nothing else leads to. */
  readonly support: SupportTable;
  readonly convert: ConvertHttpFilter;
}

/** By the full name of the message that configures the filter. None of them is terminal: only the router is. */
export type HttpFilterManifests = Readonly<Record<string, HttpFilterManifest>>;
