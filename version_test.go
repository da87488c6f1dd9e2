package dropbell

import (
	"regexp"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	if !regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(Version()) {
		t.Errorf("VERSION holds %q, which is no semantic version", Version())
	}
	if got := About("web"); !strings.HasPrefix(got, "web "+Version()+", ") {
		t.Errorf("a program says %q about itself", got)
	}
}
