// Support rows of what routes say of requests to those who limit their rates.

import { rejected, type SupportTable, supported, supportedWhole } from '../verdict.ts';

const RATE_LIMIT = 'proxy.config.route.v3.RateLimit';

export const ROUTE_RATE_LIMIT_SUPPORT: SupportTable = {
  [RATE_LIMIT]: {
    otherwise: rejected(),
    fields: {
      stage: supported(),
      disable_key: supported(),
      actions: supported(),
      limit: supported('read by the ratelimit filter'),
      hits_addend: supported(),
      apply_on_stream_done: supported('read by the ratelimit filter; entries are those of the request as it came'),
      x_ratelimit_option: supported('read by the ratelimit filter'),
    },
  },
  [`${RATE_LIMIT}.HitsAddend`]: { otherwise: rejected(), fields: { number: supported(), format: supported() } },
  [`${RATE_LIMIT}.Override`]: { otherwise: rejected(), fields: { dynamic_metadata: supported() } },
  [`${RATE_LIMIT}.Override.DynamicMetadata`]: { otherwise: rejected(), fields: { metadata_key: supportedWhole() } },
  [`${RATE_LIMIT}.Action`]: {
    otherwise: rejected(),
    fields: {
      extension: rejected('requests are described by the other actions alone'),
      source_cluster: supported("the node's cluster"),
      destination_cluster: supported('not where the cluster is named by a header'),
      request_headers: supported(),
      remote_address: supported('by the trusted hops'),
      generic_key: supported(),
      header_value_match: supported(),
      dynamic_metadata: supported(),
      metadata: supported(),
      masked_remote_address: supported(),
      query_parameter_value_match: supported(),
      query_parameters: supported(),
    },
  },
  [`${RATE_LIMIT}.Action.SourceCluster`]: { otherwise: supported(), fields: {} },
  [`${RATE_LIMIT}.Action.DestinationCluster`]: { otherwise: supported(), fields: {} },
  [`${RATE_LIMIT}.Action.RemoteAddress`]: { otherwise: supported(), fields: {} },
  [`${RATE_LIMIT}.Action.RequestHeaders`]: {
    otherwise: rejected(),
    fields: { header_name: supported(), descriptor_key: supported(), skip_if_absent: supported() },
  },
  [`${RATE_LIMIT}.Action.QueryParameters`]: {
    otherwise: rejected(),
    fields: { query_parameter_name: supported(), descriptor_key: supported(), skip_if_absent: supported() },
  },
  [`${RATE_LIMIT}.Action.MaskedRemoteAddress`]: {
    otherwise: rejected(),
    fields: { v4_prefix_mask_len: supported(), v6_prefix_mask_len: supported() },
  },
  [`${RATE_LIMIT}.Action.GenericKey`]: {
    otherwise: rejected(),
    fields: {
      default_value: supported('where descriptor_value comes to nothing; without it there is no descriptor then'),
      descriptor_value: supported('with command operators'),
      descriptor_key: supported(),
    },
  },
  [`${RATE_LIMIT}.Action.HeaderValueMatch`]: {
    otherwise: rejected(),
    fields: {
      default_value: supported('where descriptor_value comes to nothing; without it there is no descriptor then'),
      descriptor_value: supported('with command operators'),
      expect_match: supported(),
      headers: supported(),
      descriptor_key: supported(),
    },
  },
  [`${RATE_LIMIT}.Action.QueryParameterValueMatch`]: {
    otherwise: rejected(),
    fields: {
      default_value: supported('where descriptor_value comes to nothing; without it there is no descriptor then'),
      descriptor_value: supported('with command operators'),
      expect_match: supported(),
      query_parameters: supported(),
      descriptor_key: supported(),
    },
  },
  [`${RATE_LIMIT}.Action.DynamicMetaData`]: {
    otherwise: rejected(),
    fields: { descriptor_key: supported(), metadata_key: supportedWhole(), default_value: supported() },
  },
  [`${RATE_LIMIT}.Action.MetaData`]: {
    otherwise: rejected(),
    fields: {
      descriptor_key: supported(),
      metadata_key: supportedWhole(),
      default_value: supported(),
      source: supported(),
      skip_if_absent: supported(),
    },
  },
};
