package shell

import (
	"dropbell/domain/template"
	"net/http"
	"slices"
	"testing"
)

// A network of IPv6 addresses has one budget, as in the API.
func TestSignInCountsNetworks(t *testing.T) {
	from := func(ip string) string {
		return Network(&http.Request{RemoteAddr: "[" + ip + "]:1234"})
	}
	if from("2001:db8:1:2::1") != from("2001:db8:1:2:ffff::9") {
		t.Error("two addresses of one network are counted apart")
	}
	for _, other := range []string{"2001:db8:1:3::1", "192.0.2.1", "192.0.2.2"} {
		if from("2001:db8:1:2::1") == from(other) {
			t.Errorf("%s is counted with others", other)
		}
	}
	if from("192.0.2.1") == from("192.0.2.2") || from("192.0.2.1") != from("::ffff:192.0.2.1") {
		t.Error("IPv4 addresses are not counted by themselves")
	}
	if a, b := Network(&http.Request{RemoteAddr: "@"}), Network(&http.Request{RemoteAddr: ""}); a == from("192.0.2.1") || b == from("192.0.2.1") {
		t.Error("no address is counted as one")
	}
}

func TestShopsInFullWidth(t *testing.T) {
	known := []template.Shop{{Number: 7, Name: "Harbour Tea House"}, {Number: 8, Name: "24"}}
	for text, want := range map[string][]int64{"１０、11": {10, 11}, "10 11, harbour tea house": {10, 11, 7}, "24": {8}, "": nil} {
		if list, ok := TypedShops(text, known); !ok || !slices.Equal(list, want) {
			t.Errorf("%q: shops %v, want %v", text, list, want)
		}
	}
	if _, ok := TypedShops("Harbour", known); ok {
		t.Error("a part of a name is a shop")
	}
}

// Counts are read however wide their digits are, and with groups of thousands.
func TestTypedCount(t *testing.T) {
	for _, text := range []string{"１０００", "1,000", "1 000", "1000"} {
		if n, err := TypedCount(text); n != 1000 || err != nil {
			t.Errorf("%q: count %d, %v", text, n, err)
		}
	}
	if _, err := TypedCount("many"); err == nil {
		t.Error("a word is a count")
	}
}
