package pg

import (
	"strings"
	"testing"

	"dropbell/domain/delivery"
)

func TestAnnouncedKinds(t *testing.T) {
	var list []string
	for _, k := range delivery.Announced() {
		list = append(list, "'"+string(k)+"'")
	}
	if want := "(" + strings.Join(list, ", ") + ")"; Announced != want {
		t.Errorf("%s, want %s", Announced, want)
	}
}
