// How an extension takes part in the conversion of an HTTP connection manager.

import type { HttpFilterSettings } from '../../snapshot/index.ts';
import type { Conversion } from './conversion.ts';

/** @returns undefined when the filter has faults. @param at path of its configuration, `…http_filters[0].typed_config`. */
export type ConvertHttpFilter = (message: object, at: string, conversion: Conversion) => HttpFilterSettings | undefined;

/** By the full name of the message that configures the filter. None of them is terminal: only the router is. */
export type HttpFilterConverters = Readonly<Record<string, ConvertHttpFilter>>;
