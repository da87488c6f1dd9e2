package api_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

func testImportUsers(t *testing.T) {
	r := newFixture(t, nil)
	lines := []string{
		`{"id":"1001","name":"Ann","email":"ann@example.com","phone":"+8613800138000","locale":"zh-CN","timezone":"Asia/Shanghai"}`,
		`{"id":"1002","name":"O'Brien <b>","opt_outs":["sms","email"],"quiet_hours":{"from":"22:00","to":"08:00"},"attributes":{"tier":"gold","age":7,"vip":true}}`,
		``,
		`{"id":1003}`,
		`{"id":"0"}`,
		`{"id":"9223372036854775808"}`,
		`{"id":"1004","email":"not an address"}`,
		`{"id":"1005","phone":"12345"}`,
		`{"id":"1006","colour":"red"}`,
		`{"id":"1007"`,
		`{"id":"1008"} {"id":"1009"}`,
		"{\"id\":\"1010\",\"name\":\"\xff\"}",
		`{"id":"1011","name":"a\u0000b"}`,
		`{"id":"1012","attributes":{"a":{"b":1}}}`,
		`{"id":"1013","attributes":{"a":"\u0000"}}`,
		`{"id":"1014","name":"` + strings.Repeat("x", 70<<10) + `"}`,
		`{"id":"1015","opt_outs":["pigeon"]}`,
		`{"id":"1016","quiet_hours":{"from":"25:00","to":"1"}}`,
		`{"id":"1017","timezone":"Mars/Base"}`,
		`[]`, `null`, `"x"`, `7`,
		`{"id":"1001","name":"Anna"}`,
		`{"id":"9223372036854775807","name":"last"}`,
	}
	a := r.want(r.call(r.admin("Content-Type", "application/x-ndjson"), "PUT", "/admin/users", strings.Join(lines, "\n")), 200, "")
	if a.at("upserted") != 4.0 || len(a.at("errors").([]any)) != 20 {
		t.Fatalf("import: %s", a.Body)
	}
	if a.at("errors.0.line") != 4.0 || a.at("errors.12.line") != 16.0 || a.at("errors.12.error") != "the line is longer than 64 KiB" {
		t.Fatalf("lines are counted wrong: %s", a.Body)
	}
	if n := r.number(`select count(*) from users`); n != 3 {
		t.Fatalf("%d users, want 3", n)
	}
	if n := r.number(`select count(*) from users where id = 1001 and name = 'Anna' and email = 'ann@example.com'`); n != 1 {
		t.Fatal("the later line must change the name and keep the rest")
	}
	if n := r.number(`select count(*) from users where id = 1002 and opt_outs = 6 and quiet_from = 1320 and quiet_to = 480 and attributes->>'tier' = 'gold'`); n != 1 {
		t.Fatal("opt-outs, quiet hours or attributes are lost")
	}
	verified := func(line string, want int64) {
		t.Helper()
		if a := r.want(r.call(r.admin(), "PUT", "/admin/users", line), 200, ""); a.at("upserted") != 1.0 || r.number(`select count(*) from users where id = 1001 and phone_verified_at is not null`) != want {
			t.Errorf("%s: %s", line, a.Body)
		}
	}
	verified(`{"id":"1001","phone":"+8613800138000","phone_verified":true}`, 1)
	verified(`{"id":"1001","phone":"+8613800138000"}`, 1)
	verified(`{"id":"1001","phone":"+8613800138001"}`, 0)
	verified(`{"id":"1001","phone_verified":true}`, 1)
	verified(`{"id":"1001","phone_verified":null}`, 0)
	r.want(r.call(r.admin(), "PUT", "/admin/users", `{"id":"1001","email":null,"phone":""}`), 200, "")
	if n := r.number(`select count(*) from users where id = 1001 and name = 'Anna' and email = '' and phone = '' and locale = 'zh-CN'`); n != 1 {
		t.Fatal("null and empty must clear, absent must keep")
	}
	if a := r.want(r.call(r.admin(), "PUT", "/admin/users", ""), 200, ""); a.at("upserted") != 0.0 {
		t.Fatalf("nothing: %s", a.Body)
	}
	r.want(r.call(r.admin("Content-Type", "multipart/form-data; boundary=x"), "PUT", "/admin/users", "x"), 415, "unsupported_media_type")
	if n := r.number(`select count(*) from audit where action = 'user.import' and after::text like '%ann%'`); n != 0 {
		t.Fatal("a contact is in the audit log")
	}
}

// TestImportSkipsAByteOrderMark: the byte order mark that some programs write before UTF-8 is
// skipped. In the middle of the body it is no JSON.
func TestImportSkipsAByteOrderMark(t *testing.T) {
	r := newFixture(t, nil)
	a := r.want(r.call(r.admin(), "PUT", "/admin/users", "\xef\xbb\xbf{\"id\":\"1001\"}\r\n\xef\xbb\xbf{\"id\":\"1002\"}\n"), 200, "")
	if a.at("upserted") != 1.0 || a.at("errors.0.line") != 2.0 {
		t.Errorf("%s", a.Body)
	}
}

// A name counts letter for letter, and once.
func TestImportTakesNamesLiterally(t *testing.T) {
	r := newFixture(t, nil)
	wrong := map[string]string{
		`{"id":"1","ID":"2"}`:                                  `unknown field "ID"`,
		`{"ID":"2"}`:                                           `unknown field "ID"`,
		`{"id":"1","Name":"Ann"}`:                              `unknown field "Name"`,
		`{"id":"1","id":"2"}`:                                  `the field "id" is given more than once`,
		`{"id":"1","\u0069d":"2"}`:                             `the field "id" is given more than once`,
		`{"id":"1","name":"\ud800","name":"b"}`:                `the field "name" is given more than once`,
		`{"id":"1","attributes":{"a":1,"a":2}}`:                `the field "a" is given more than once`,
		`{"id":"1","attributes":{"a":1},"attributes":{"b":1}}`: `the field "attributes" is given more than once`,
		`{"id":"1","quiet_hours":{"from":"22:00","from":"23:00","to":"08:00"}}`:    `the field "from" is given more than once`,
		`{"id":"1","quiet_hours":{"From":"22:00","to":"08:00","from":"21:00"}}`:    `unknown field "From"`,
		`{"id":"1","quiet_hours":{"from":"22:00","to":"22:00"}}`:                   "quiet_hours: from and to must differ; null removes the quiet hours",
		`{"id":"1","quiet_hours":{"from":"22:00","to":"08:00","zone":"Asia/Tok"}}`: `unknown field "zone"`,
	}
	for line, want := range wrong {
		a := r.want(r.call(r.admin(), "PUT", "/admin/users", line), 200, "")
		if a.at("upserted") != 0.0 || len(a.at("errors").([]any)) != 1 || a.at("errors.0.error") != want {
			t.Errorf("%s: %s, want %s", line, a.Body, want)
		}
	}
	if n := r.number(`select count(*) from users`); n != 0 {
		t.Fatalf("%d users are stored", n)
	}
	fine := `{"id":"1","name":"Ann","attributes":{"ID":"x","id":"y"},"quiet_hours":{"from":"22:00","to":"08:00"},"opt_outs":["sms"]}`
	if a := r.want(r.call(r.admin(), "PUT", "/admin/users", fine), 200, ""); a.at("upserted") != 1.0 {
		t.Fatalf("%s: %s", fine, a.Body)
	}
}

// endless makes n lines as they are read.
type endless struct {
	n, at int
	rest  []byte
	line  func(int) string
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.at == e.n {
			return 0, io.EOF
		}
		e.at++
		e.rest = []byte(e.line(e.at) + "\n")
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestImportIsBounded(t *testing.T) {
	r := newFixture(t, nil)
	bad := &endless{n: 30_000, line: func(i int) string { return fmt.Sprintf(`{"id":"x%d"}`, i) }}
	a := r.want(r.call(r.admin(), "PUT", "/admin/users", bad), 200, "")
	if len(a.at("errors").([]any)) != 1000 || a.at("more_errors") != 29000.0 {
		t.Fatalf("%d errors and %v more", len(a.at("errors").([]any)), a.at("more_errors"))
	}
	long := &endless{n: 600, line: func(i int) string {
		return fmt.Sprintf(`{"id":"%d","name":%q,"x":"%s"}`, i, "n", strings.Repeat("y", 60<<10))
	}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	peak := uint64(0)
	long.line = func(inner func(int) string) func(int) string {
		return func(i int) string {
			if i%50 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&after)
				peak = max(peak, after.HeapAlloc)
			}
			return inner(i)
		}
	}(long.line)
	r.want(r.call(r.admin(), "PUT", "/admin/users", long), 200, "")
	if peak > before.HeapAlloc+20<<20 {
		t.Fatalf("36 MB of lines took %d MB of memory", (peak-before.HeapAlloc)>>20)
	}
	many := &endless{n: 25_500, line: func(i int) string { return fmt.Sprintf(`{"id":"%d","name":"u"}`, 30_000-i) }}
	if a := r.want(r.call(r.admin(), "PUT", "/admin/users", many), 200, ""); a.at("upserted") != 25500.0 || r.number(`select count(*) from users`) != 25500 {
		t.Fatalf("%s, %d users", a.Body, r.number(`select count(*) from users`))
	}
}

func TestImportCutShort(t *testing.T) {
	r := newFixture(t, nil)
	lines := &endless{n: 1500, line: func(i int) string { return fmt.Sprintf(`{"id":"%d"}`, i) }}
	a := r.want(r.call(r.admin(), "PUT", "/admin/users", io.MultiReader(lines, failing{})), 400, "malformed_json")
	if n := r.number(`select count(*) from users`); n != 1000 || !strings.Contains(a.Body.String(), "1000 lines were stored") {
		t.Fatalf("%d users; %s", n, a.Body)
	}
}
