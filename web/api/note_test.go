package api_test

import (
	"strings"
	"testing"
)

// TestNoteIsForStaff: staff write, change, clear and find the note of a drop; users never see it.
func TestNoteIsForStaff(t *testing.T) {
	t.Parallel()
	r := newFixture(t, nil)
	const note = "Approved by Ada\nCall the baker"
	a := r.want(r.call(r.admin(), "POST", "/admin/templates", but("note", note)), 201, "")
	path := "/admin/templates/" + a.at("id").(string)
	if a.at("note") != note {
		t.Errorf("created with the note %v", a.at("note"))
	}
	a = r.want(r.call(r.admin("If-Match", "1"), "PATCH", path, `{"stock":5}`), 200, "")
	if a.at("note") != note {
		t.Errorf("a change of the stock leaves the note %v", a.at("note"))
	}
	r.want(r.call(r.admin("If-Match", "2"), "PATCH", path, `{"note":"`+strings.Repeat("x", 501)+`"}`), 422, "invalid_request")
	if w := r.call(r.admin(), "GET", "/admin/templates?q=baker", nil); !strings.Contains(w.Body.String(), "Approved by Ada") {
		t.Errorf("the note is not found: %s", w.Body)
	}
	r.want(r.call(r.admin(), "POST", path+"/publish", nil), 200, "")
	if w := r.call(as(""), "GET", strings.TrimPrefix(path, "/admin"), nil); w.Code != 200 || strings.Contains(w.Body.String(), "baker") {
		t.Errorf("users see %d %s", w.Code, w.Body)
	}
	a = r.want(r.call(r.admin(), "GET", path, nil), 200, "")
	if a.at("note") != note {
		t.Errorf("published with the note %v", a.at("note"))
	}
}
