package audience

import (
	"testing"

	"dropbell/domain/field"
	"dropbell/domain/user"
)

// TestLinesHaveEveryField: a line of an import can set each field of a user, except subscriptions,
// which only browsers know.
func TestLinesHaveEveryField(t *testing.T) {
	c, err := parseUser([]byte(`{"id":"1","name":"Ann","email":"ann@example.com","phone":"+8613800138000","phone_verified":true,"locale":"zh-CN",
		"timezone":"Asia/Shanghai","household":"5f2b9c0d7a1e4483","opt_outs":["sms"],"quiet_hours":{"from":"22:00","to":"08:00"},"attributes":{"tier":"gold"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range field.Of[user.Change]() {
		if f.Of(&c).IsNil() != (f.Name == "push") {
			t.Errorf("%s is %v", f.Name, f.Of(&c))
		}
	}
}
