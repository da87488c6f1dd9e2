package field_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/domain/field"
)

type inner struct {
	Note string `field:"note,max=5,lines,found"`
}

type row struct {
	Name string `field:"name,fixed"`
	inner
	At    time.Time  `field:"at"`
	Until *time.Time `field:"until"`
	Over  uint8      `field:"channels,kept=over"`
}

func TestTableHasTheNamesOfTheTags(t *testing.T) {
	table := field.Of[row]()
	if diff := cmp.Diff([]string{"name", "note", "at", "until", "channels"}, table.Names()); diff != "" {
		t.Error(diff)
	}
	note, ok := table.Named("note")
	if !ok || note.Max() != 5 || !note.Has(field.Lines) || note.Has(field.Fixed) {
		t.Errorf("note is %+v", note)
	}
	if diff := cmp.Diff([]string{"name"}, table.With(field.Fixed).Names()); diff != "" {
		t.Error(diff)
	}
	var r row
	note.Of(&r).SetString("hello")
	if r.Note != "hello" || table.Values(r)["note"] != "hello" {
		t.Errorf("%+v has the values %v", r, table.Values(r))
	}
}

func TestTagsThatAreMistakes(t *testing.T) {
	for name, table := range map[string]func(){
		"no tag": func() { field.Of[struct{ Name string }]() },
		"unknown option": func() {
			field.Of[struct {
				Name string `field:"name,long"`
			}]()
		},
		"the same name": func() {
			field.Of[struct {
				A string `field:"name"`
				B string `field:"name"`
			}]()
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			table()
		}()
	}
}

func TestChangedComparesInstants(t *testing.T) {
	table := field.Of[row]()
	at := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	there := at.In(time.FixedZone("", 3600))
	a := row{Name: "a", At: at, Until: &at}
	if names := table.Changed(a, row{Name: "a", At: there, Until: &there}); names != nil {
		t.Errorf("%v differ", names)
	}
	if diff := cmp.Diff([]string{"name", "note", "until"}, table.Changed(a, row{inner: inner{"n"}, At: at})); diff != "" {
		t.Error(diff)
	}
}

func TestStoredJSON(t *testing.T) {
	table := field.Of[row]()
	at := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	want := row{Name: "a", inner: inner{"n"}, Until: &at, Over: 3}
	b, err := table.Marshal(want)
	if err != nil || string(b) != `{"name":"a","note":"n","over":3,"until":"2027-01-01T12:00:00Z"}` {
		t.Fatalf("%s, %v", b, err)
	}
	got, err := table.Unmarshal(b)
	if err != nil || table.Changed(got, want) != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = table.Unmarshal([]byte(`{"name":"b","gone":1}`)); err != nil || got.Name != "b" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err = table.Unmarshal([]byte(`{"name":1}`)); err == nil {
		t.Error("a name that is a number is accepted")
	}
}
