await Promise.resolve();
export default () => () => ({});
