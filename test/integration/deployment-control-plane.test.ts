// deploy/kubernetes/marin3r.yaml: a bootstrap that asks a control plane, and the resources that this one is to tell. No cluster is at
// hand here: a management server of the tests tells them to the real program, over TLS with a client's certificate.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { ServerCredentials } from '@grpc/grpc-js';
import { Ajv } from 'ajv';
import { dump, loadAll, load as readYaml } from 'js-yaml';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import type { JsonObject } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { answerOf, CLUSTER, LISTENER, ROUTES, upstreamSaying } from '../support/discovered-proxy.ts';
import { startWeir } from '../support/weir-process.ts';
import { unusedPort } from '../support/wire.ts';

interface Resource {
  readonly type: string;
  readonly value: JsonObject;
}

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data: { readonly 'weir.yaml': string };
  readonly spec: {
    readonly nodeID: string;
    readonly resources: readonly Resource[];
    readonly selector: { readonly matchLabels?: object };
    readonly ports: readonly { readonly targetPort: string }[];
    readonly template: {
      readonly metadata: { readonly labels: object };
      readonly spec: {
        readonly containers: readonly [
          {
            readonly args: readonly string[];
            readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
            readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
          },
        ];
        readonly volumes: readonly { readonly name: string }[];
      };
    };
  };
}

const TEXT = { type: 'string' };
const PORT = { type: 'integer', minimum: 1, maximum: 65_535 };
const CERTIFICATE = objectOf({ duration: TEXT, secretName: TEXT }, ['duration', 'secretName']);

/** What the custom resource definitions of the operator, version v1alpha1, allow in `spec`, as far as manifests of ours may go. */
const OPERATOR_KINDS: Readonly<Record<string, { readonly group: string; readonly spec: object }>> = {
  DiscoveryService: {
    group: 'operator.marin3r.3scale.net',
    spec: objectOf({
      image: TEXT,
      debug: { type: 'boolean' },
      xdsServerPort: PORT,
      metricsPort: PORT,
      probePort: PORT,
      podPriorityClass: TEXT,
      serviceConfig: objectOf({ name: TEXT, type: TEXT }),
      pkiConfg: objectOf({ rootCertificateAuthority: CERTIFICATE, serverCertificate: CERTIFICATE }, [
        'rootCertificateAuthority',
        'serverCertificate',
      ]),
      resources: { type: 'object' },
      affinity: { type: 'object' },
    }),
  },
  // `envoyResources` and `serialization`, by which resources were texts, are on their way out.
  EnvoyConfig: {
    group: 'marin3r.3scale.net',
    spec: objectOf(
      {
        nodeID: TEXT,
        envoyAPI: { enum: ['v3'] },
        resources: {
          type: 'array',
          items: objectOf(
            {
              type: {
                enum: [
                  'listener',
                  'route',
                  'scopedRoute',
                  'cluster',
                  'endpoint',
                  'secret',
                  'runtime',
                  'extensionConfig',
                ],
              },
              value: { type: 'object' },
              blueprint: { enum: ['tlsCertificate', 'validationContext'] },
              generateFromTlsSecret: TEXT,
              generateFromOpaqueSecret: objectOf({ name: TEXT, key: TEXT, alias: TEXT }, ['name', 'key', 'alias']),
              generateFromEndpointSlices: objectOf(
                { clusterName: TEXT, targetPort: TEXT, selector: { type: 'object' } },
                ['clusterName', 'targetPort', 'selector'],
              ),
            },
            ['type'],
          ),
        },
      },
      ['nodeID'],
    ),
  },
};

function objectOf(properties: object, required: readonly string[] = []): object {
  return { type: 'object', properties, required, additionalProperties: false };
}

/** @param object of a kind of the operator. @returns where it breaks the definition of its kind, and how. */
function faultsOf(object: { readonly kind: string }): readonly string[] {
  const { group, spec } = OPERATOR_KINDS[object.kind]!;
  const schema = objectOf(
    { apiVersion: { const: `${group}/v1alpha1` }, kind: TEXT, metadata: { type: 'object' }, spec },
    ['apiVersion', 'kind', 'metadata'],
  );
  const validate = new Ajv({ allErrors: true }).compile(schema);
  validate(object);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

const file = path.join(PACKAGE_ROOT, 'deploy', 'kubernetes', 'marin3r.yaml');
const manifests = loadAll(readFileSync(file, 'utf8')) as Manifest[];
const manifest = (kind: string): Manifest => manifests.find((one) => one.kind === kind)!;
const { spec: config } = manifest('EnvoyConfig');
const bootstrapText = manifest('ConfigMap').data['weir.yaml'];

describe('the manifest for a control plane in Kubernetes', () => {
  it('has objects of the operator as their definitions want them', () => {
    for (const kind of Object.keys(OPERATOR_KINDS)) assert.deepEqual(faultsOf(manifest(kind)), [], kind);
    const { metadata } = manifest('EnvoyConfig');
    const config = { apiVersion: 'marin3r.3scale.net/v1alpha1', kind: 'EnvoyConfig', metadata };
    const faults = [
      [{ ...config, spec: {} }, "/spec must have required property 'nodeID'"],
      [{ ...config, spec: { nodeID: 'a', nodeId: 'a' } }, '/spec must NOT have additional properties'],
      [
        { ...config, spec: { nodeID: 'a', envoyAPI: 'v2' } },
        '/spec/envoyAPI must be equal to one of the allowed values',
      ],
      [
        { ...config, spec: { nodeID: 'a', resources: [{ type: 'clusters', value: {} }] } },
        '/spec/resources/0/type must be',
      ],
      [
        { ...config, spec: { nodeID: 'a', resources: [{ type: 'cluster', value: 'name: a' }] } },
        '/spec/resources/0/value must be object',
      ],
      [{ ...config, apiVersion: 'marin3r.3scale.net/v1', spec: { nodeID: 'a' } }, '/apiVersion must be'],
    ] as const;
    for (const [wrong, reason] of faults)
      assert.ok(faultsOf(wrong)[0]?.startsWith(reason), `${reason}: ${faultsOf(wrong)}`);
  });

  it('tells resources to the node of its bootstrap, from the service of its control plane', () => {
    const { node } = readYaml(bootstrapText) as { readonly node: { readonly id: string } };
    assert.equal(node.id, config.nodeID);
    assert.match(bootstrapText, new RegExp(`address: marin3r-${manifest('DiscoveryService').metadata.name}, `));
  });

  it('selects its own pods, and mounts what its configuration names', () => {
    const { metadata, spec } = manifest('Deployment').spec.template;
    assert.deepEqual(manifest('Deployment').spec.selector.matchLabels, metadata.labels);
    assert.deepEqual(manifest('Service').spec.selector, metadata.labels);
    const [{ args, ports, volumeMounts }] = spec.containers;
    const mounts = volumeMounts.map(({ mountPath }) => mountPath);
    const files = [args[1]!, ...[...bootstrapText.matchAll(/filename: (\S+) /g)].map(([, name]) => name!)];
    for (const name of files) assert.ok(mounts.includes(path.dirname(name)), name);
    assert.deepEqual(
      volumeMounts.map(({ name }) => name),
      spec.volumes.map(({ name }) => name),
    );
    const named = new Set(ports.map(({ name }) => name));
    for (const { targetPort } of manifest('Service').spec.ports) assert.ok(named.has(targetPort));
  });

  it('serves what the control plane tells, and proves who it is', async (t) => {
    using folder = new CertificateFolder();
    const ca = await folder.make('ca', { isAuthority: true });
    const own = await folder.make('server', { issuer: ca });
    const client = await folder.make('client', { issuer: ca });
    const pair = { private_key: Buffer.from(own.key), cert_chain: Buffer.from(own.certificate) };
    const plane = await ControlPlane.start(
      t,
      0,
      ServerCredentials.createSsl(Buffer.from(ca.certificate), [pair], true),
    );
    const port = await upstreamSaying(t, 'app');
    const local = (text: string): string =>
      text
        .replaceAll('0.0.0.0', '127.0.0.1')
        .replaceAll(/port_value: (?:8080|9902)/g, 'port_value: 0')
        .replace(/address: app, port_value: 0/, `address: localhost, port_value: ${port}`);
    const told = (kind: string): readonly JsonObject[] =>
      config.resources
        .filter(({ type }) => type === kind)
        .map(({ value }) => readYaml(local(dump(value, { flowLevel: 0, lineWidth: -1 }))) as JsonObject);
    plane.set(CLUSTER, '1', told('cluster'));
    plane.set(ROUTES, '1', told('route'));
    plane.set(LISTENER, '1', told('listener'));
    const configYaml = local(bootstrapText)
      .replaceAll('9901', String(await unusedPort()))
      .replace('address: marin3r-discoveryservice, port_value: 18000', `address: localhost, port_value: ${plane.port}`)
      .replace('/etc/weir/tls/tls.crt', client.certificatePath)
      .replace('/etc/weir/tls/tls.key', client.keyPath);
    await using weir = await startWeir({ configYaml });
    assert.equal(await answerOf(weir, 'http'), '200 app');
    for (const type of [CLUSTER, ROUTES, LISTENER]) assert.equal((await plane.answered(type, '1')).error_detail, null);
    assert.equal(plane.requests[0]!.node!.id, config.nodeID);
    const { port: status } = (await weir.listeners()).get('status')!;
    assert.equal((await fetch(`http://127.0.0.1:${status}/ready`)).status, 200);
    assert.deepEqual(plane.violations, []);
  });
});
