package storetest

import (
	"bytes"
	"testing"

	"coldplane/analyze/etcdstore"
)

const spec = `
# two members, one never started
version 3.5
member 8e9e05c52164694d name=cp1 peer=https://10.0.0.1:2380 client=https://10.0.0.1:2379
member 91bc3c398fb3c146 peer=https://10.0.0.2:2380 learner
removed fd422379fda50e48
alarm NOSPACE 8e9e05c52164694d
meta consistent_index=40 term=3
lease 694d ttl=3600 count=3
put /registry/configmaps/junk/big size=5000 gvk=v1/ConfigMap
put /registry/events/shop/e count=20 lease=694d gvk=v1/Event size=300
put /registry/secrets/shop/s enc=aescbc:key1 size=200
put /registry/example.com/widgets/shop/w json=example.com/v1/Widget size=400 times=3
object
apiVersion: v1
kind: Node
metadata: {name: cp1}
end
delete /registry/configmaps/junk/big
free 50
trailer
`

func TestBuild(t *testing.T) {
	data, err := Build(spec)
	if err != nil {
		t.Fatal(err)
	}
	s, err := etcdstore.Read(t.Context(), bytes.NewReader(data), int64(len(data)), etcdstore.Options{Trailer: true})
	if err != nil {
		t.Fatal(err)
	}
	if !s.Clean() || s.Trailer != etcdstore.TrailerOK || len(s.Problems) > 0 {
		t.Errorf("damage %v, trailer %v, problems %v", s.Damage, s.Trailer, s.Problems)
	}
	if s.Records != 27 || s.Live != 23 || s.Tombstones != 1 || s.MaxRev != 28 || s.MissingTotal != 0 {
		t.Errorf("records %d live %d tombstones %d revision %d missing %d", s.Records, s.Live, s.Tombstones, s.MaxRev, s.MissingTotal)
	}
	if len(s.Members) != 2 || !s.Members[1].Learner || s.Members[1].Started() || len(s.Removed) != 1 || s.LeaseTotal != 3 {
		t.Errorf("members %+v removed %v leases %d", s.Members, s.Removed, s.LeaseTotal)
	}
	if len(s.Alarms) != 1 || s.Alarms[0] != (etcdstore.Alarm{MemberID: 0x8e9e05c52164694d, Type: "NOSPACE"}) {
		t.Errorf("alarms %v", s.Alarms)
	}
	if s.Pages.Free < 50 {
		t.Errorf("free pages %d", s.Pages.Free)
	}
	kinds := map[string]etcdstore.Format{}
	for _, ty := range s.Types {
		if len(ty.Formats) > 0 {
			kinds[ty.Type] = ty.Formats[0].Format
		}
	}
	for typ, want := range map[string]etcdstore.Format{
		"events":              {Encoding: etcdstore.Protobuf, APIVersion: "v1", Kind: "Event"},
		"minions":             {Encoding: etcdstore.Protobuf, APIVersion: "v1", Kind: "Node"},
		"secrets":             {Encoding: etcdstore.Encrypted, Provider: "aescbc", Key: "key1"},
		"example.com/widgets": {Encoding: etcdstore.JSON, APIVersion: "example.com/v1", Kind: "Widget"},
	} {
		if kinds[typ] != want {
			t.Errorf("%s: %+v, want %+v", typ, kinds[typ], want)
		}
	}
}

func TestSpecErrors(t *testing.T) {
	for _, bad := range []string{"nonsense", "put", "alarm FULL 1", "object\napiVersion: v1\n", "member zz"} {
		if _, err := Build(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
