package user_test

import (
	"strings"
	"testing"

	"dropbell/domain/fault"
	"dropbell/domain/user"
)

func TestPhonesThatAreRefused(t *testing.T) {
	s := &user.Service{Store: &recordingStore{}}
	apple, google := strings.Repeat("Ab", 32), "fYx3:APA91b"+strings.Repeat("x", 130)
	for name, c := range map[string]struct {
		device   user.Device
		replaced string
		field    string // "" = accepted
	}{
		"an iPhone":             {user.Device{Platform: user.IOS, Token: apple, AppVersion: "5.2 (81)", Locale: "zh-CN"}, "", ""},
		"an Android phone":      {user.Device{Platform: user.Android, Token: google}, google + "old", ""},
		"a mini program":        {user.Device{Platform: user.WeChat, Token: "oABCD_efghIJKLmnop-QRSTuvwx1", App: "wx0123456789abcdef"}, "", ""},
		"no AppID":              {user.Device{Platform: user.WeChat, Token: "oABCD_efghIJKLmnop-QRSTuvwx1"}, "", "app"},
		"no openid":             {user.Device{Platform: user.WeChat, Token: "o/../x", App: "wx0123456789abcdef"}, "", "token"},
		"an iPhone with an app": {user.Device{Platform: user.IOS, Token: apple, App: "com.example.Shop-1"}, "", ""},
		"an Android app":        {user.Device{Platform: user.Android, Token: google, App: "shop-example-1a2b3"}, "", ""},
		"an old project":        {user.Device{Platform: user.Android, Token: google, App: "example.com:shop"}, "", ""},
		"no bundle id":          {user.Device{Platform: user.IOS, Token: apple, App: "wx0123456789abcdef"}, "", "app"},
		"a long bundle id":      {user.Device{Platform: user.IOS, Token: apple, App: "com." + strings.Repeat("a", user.MaxApp)}, "", "app"},
		"no project":            {user.Device{Platform: user.Android, Token: google, App: "Com.Example"}, "", "app"},
		"no platform":           {user.Device{Token: apple}, "", "platform"},
		"another platform":      {user.Device{Platform: "symbian", Token: apple}, "", "platform"},
		"no token":              {user.Device{Platform: user.IOS}, "", "token"},
		"a token as base64":     {user.Device{Platform: user.IOS, Token: "q83vEjRWeJA=" + strings.Repeat("A", 60)}, "", "token"},
		"half a token":          {user.Device{Platform: user.IOS, Token: apple[1:]}, "", "token"},
		"a path":                {user.Device{Platform: user.Android, Token: strings.Repeat("../", 20)}, "", "token"},
		"a long token":          {user.Device{Platform: user.Android, Token: strings.Repeat("a", user.MaxToken+1)}, "", "token"},
		"a long version":        {user.Device{Platform: user.IOS, Token: apple, AppVersion: strings.Repeat("1", 41)}, "", "app_version"},
		"a version of control":  {user.Device{Platform: user.IOS, Token: apple, AppVersion: "1\x00"}, "", "app_version"},
		"a wrong language":      {user.Device{Platform: user.IOS, Token: apple, Locale: "zh_CN.UTF-8"}, "", "locale"},
		"a broken old token":    {user.Device{Platform: user.IOS, Token: apple}, "\xff", "replaces"},
	} {
		got, err := s.PutDevice(t.Context(), 1, c.device, c.replaced)
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.field == "" && got.Platform == user.IOS && got.Token != strings.ToLower(apple):
			t.Errorf("%s: the token is stored as %s", name, got.Token)
		case c.field != "" && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.field)):
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDeviceIDTellsNoToken(t *testing.T) {
	d := user.Device{Platform: user.IOS, Token: strings.Repeat("ab", 32)}
	other := d
	other.Platform = user.Android
	if id := d.DeviceID(); len(id) != 32 || strings.Contains(id, "abab") || id == other.DeviceID() || id != d.DeviceID() {
		t.Errorf("got %s", id)
	}
}
