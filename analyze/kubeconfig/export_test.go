package kubeconfig

// ParseDoc is parse for tests outside the package.
var ParseDoc = parse
