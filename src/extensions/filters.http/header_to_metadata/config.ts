// Config message → settings of the header_to_metadata filter, and the same of routes.

import {
  type Conversion,
  convertSubstitution,
  type HttpFilterManifest,
  type MessageTypes,
  only,
  rejected,
  supported,
} from '../../../config/index.ts';
import type { HeaderToMetadataSettings, MetadataRule, MetadataTarget } from './settings.ts';

const CONFIG = 'proxy.extensions.filters.http.header_to_metadata.v3.Config';
const RULE = 'proxy.extensions.filters.http.header_to_metadata.v3.Config.Rule';
const PAIR = 'proxy.extensions.filters.http.header_to_metadata.v3.Config.KeyValuePair';
const OWN_NAMESPACE = 'envoy.filters.http.header_to_metadata';
// By the numbers of their enums.
const NUMBER = 1;
const BASE64 = 1;

type ConfigMessage = MessageTypes[typeof CONFIG];
type RuleMessage = MessageTypes[typeof RULE];
type PairMessage = MessageTypes[typeof PAIR];

export const HEADER_TO_METADATA: HttpFilterManifest = {
  support: {
    [CONFIG]: { otherwise: rejected(), fields: { request_rules: supported(), response_rules: supported() } },
    [RULE]: {
      otherwise: rejected(),
      fields: {
        header: supported(),
        cookie: supported('of requests'),
        on_header_present: supported(),
        on_header_missing: supported(),
        remove: supported(),
      },
    },
    [PAIR]: {
      otherwise: rejected(),
      fields: {
        metadata_namespace: supported('envoy.lb chooses among subsets of hosts'),
        key: supported(),
        value: supported(),
        regex_value_rewrite: supported(),
        type: only(['STRING', 'NUMBER']),
        encode: supported(),
      },
    },
  },
  convert: (message, at, conversion) => ({
    name: 'filters.http.header_to_metadata',
    settings: convertConfig(message as ConfigMessage, at, conversion),
  }),
  ofRoutes: {
    type: CONFIG,
    convert(message, at, conversion) {
      const { request_rules: request, response_rules: response } = message as ConfigMessage;
      if (request.length + response.length === 0) conversion.faults.error(at, 'needs request_rules or response_rules');
      return convertConfig(message as ConfigMessage, at, conversion);
    },
  },
};

function convertConfig(message: ConfigMessage, at: string, conversion: Conversion): HeaderToMetadataSettings {
  const rules = (name: 'request_rules' | 'response_rules'): readonly MetadataRule[] =>
    message[name].map((rule, index) => convertRule(rule, `${at}.${name}[${index}]`, name, conversion));
  return { request: rules('request_rules'), response: rules('response_rules') };
}

function convertRule(rule: RuleMessage, at: string, list: string, conversion: Conversion): MetadataRule {
  const { header, cookie, on_header_present: present, on_header_missing: missing, remove } = rule;
  const { faults } = conversion;
  if (header === '' && cookie === '') faults.error(at, 'needs header or cookie');
  if (header !== '' && cookie !== '') faults.error(`${at}.cookie`, 'cannot be given together with header');
  if (cookie !== '' && list === 'response_rules') faults.error(`${at}.cookie`, 'only requests have cookies');
  if (cookie !== '' && remove) faults.error(`${at}.remove`, 'a cookie cannot be taken out');
  if (present === null && missing === null && !remove) {
    faults.error(at, 'needs on_header_present or on_header_missing');
  }
  if (missing !== null && missing.value === '') faults.error(`${at}.on_header_missing.value`, 'is empty');
  return {
    source: cookie === '' ? 'header' : 'cookie',
    name: cookie === '' ? header.toLowerCase() : cookie,
    onPresent: present && convertPair(present, `${at}.on_header_present`, conversion),
    onMissing: missing && convertPair(missing, `${at}.on_header_missing`, conversion),
    isRemoved: remove,
  };
}

function convertPair(pair: PairMessage, at: string, { faults }: Conversion): MetadataTarget {
  const { metadata_namespace: namespace, regex_value_rewrite: rewrite } = pair;
  if (pair.value !== '' && rewrite !== null) {
    faults.error(`${at}.regex_value_rewrite`, 'cannot be given together with value');
  }
  return {
    namespace: namespace || OWN_NAMESPACE,
    key: pair.key,
    value: pair.value,
    rewrite: rewrite && (convertSubstitution(rewrite, `${at}.regex_value_rewrite`, faults) ?? null),
    isNumber: pair.type === NUMBER,
    isBase64: pair.encode === BASE64,
  };
}
