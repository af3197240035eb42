package sarif

// The part of SARIF 2.1.0 that is written here. A kept library has the whole
// of it but writes every empty array and default of the standard for each
// place, twenty lines for one; the tests validate against its schema instead.

type log struct {
	Schema  string `json:"$schema"`
	Version string `json:"version"`
	Runs    []run  `json:"runs"`
}

type run struct {
	Tool               tool                `json:"tool"`
	Invocations        []invocation        `json:"invocations"`
	Artifacts          []artifact          `json:"artifacts,omitempty"`
	OriginalURIBaseIDs map[string]artifact `json:"originalUriBaseIds,omitempty"`
	Results            []result            `json:"results"`
	ColumnKind         string              `json:"columnKind"`
	AutomationDetails  *automation         `json:"automationDetails,omitempty"`
	Properties         map[string]any      `json:"properties,omitempty"`
}

type automation struct {
	ID string `json:"id"`
}

type tool struct {
	Driver driver `json:"driver"`
}

type driver struct {
	Name          string       `json:"name"`
	Version       string       `json:"version,omitempty"`
	Rules         []descriptor `json:"rules"`
	Notifications []descriptor `json:"notifications,omitempty"`
}

type descriptor struct {
	ID               string         `json:"id"`
	Name             string         `json:"name,omitempty"`
	ShortDescription *message       `json:"shortDescription,omitempty"`
	FullDescription  *message       `json:"fullDescription,omitempty"`
	Help             *message       `json:"help,omitempty"`
	HelpURI          string         `json:"helpUri,omitempty"`
	Configuration    *configuration `json:"defaultConfiguration,omitempty"`
	Properties       map[string]any `json:"properties,omitempty"`
}

type configuration struct {
	Level string `json:"level"`
}

type message struct {
	Text string `json:"text"`
}

type invocation struct {
	Successful    bool           `json:"executionSuccessful"`
	Notifications []notification `json:"toolExecutionNotifications,omitempty"`
}

type notification struct {
	Descriptor *reference `json:"descriptor,omitempty"`
	Rule       *reference `json:"associatedRule,omitempty"`
	Message    message    `json:"message"`
	Level      string     `json:"level"`
	Locations  []location `json:"locations,omitempty"`
}

type reference struct {
	ID string `json:"id"`
}

type artifact struct {
	Location    *artifactLocation `json:"location,omitempty"`
	Description *message          `json:"description,omitempty"`
	Hashes      map[string]string `json:"hashes,omitempty"`
	Roles       []string          `json:"roles,omitempty"`
	URI         string            `json:"uri,omitempty"`
}

type artifactLocation struct {
	URI       string `json:"uri,omitempty"`
	URIBaseID string `json:"uriBaseId,omitempty"`
}

type result struct {
	RuleID              string            `json:"ruleId"`
	RuleIndex           *int              `json:"ruleIndex,omitempty"`
	Kind                string            `json:"kind"`
	Level               string            `json:"level"`
	Message             message           `json:"message"`
	Locations           []location        `json:"locations,omitempty"`
	RelatedLocations    []location        `json:"relatedLocations,omitempty"`
	PartialFingerprints map[string]string `json:"partialFingerprints"`
	Suppressions        []suppression     `json:"suppressions,omitempty"`
	Properties          map[string]any    `json:"properties,omitempty"`
}

type suppression struct {
	Kind          string `json:"kind"`
	Status        string `json:"status"`
	Justification string `json:"justification"`
}

type location struct {
	ID       *int              `json:"id,omitempty"`
	Physical *physical         `json:"physicalLocation,omitempty"`
	Logical  []logicalLocation `json:"logicalLocations,omitempty"`
	Message  *message          `json:"message,omitempty"`
}

type physical struct {
	Artifact artifactLocation `json:"artifactLocation"`
	Region   *region          `json:"region,omitempty"`
}

type region struct {
	StartLine  int      `json:"startLine,omitempty"`
	ByteOffset *int64   `json:"byteOffset,omitempty"`
	Snippet    *message `json:"snippet,omitempty"`
}

type logicalLocation struct {
	Name               string `json:"name,omitempty"`
	FullyQualifiedName string `json:"fullyQualifiedName,omitempty"`
	Kind               string `json:"kind,omitempty"`
}
