package user

// ValidEmail reports whether s can be the address of a user.
func ValidEmail(s string) bool { return validEmail(s) }

// ValidLocale reports whether s is empty or has the form of a BCP 47 tag such as zh-CN.
func ValidLocale(s string) bool { return s == "" || localeForm.MatchString(s) && len(s) <= 35 }

// ValidPhone reports whether s is an E.164 number such as +8613800138000.
func ValidPhone(s string) bool { return phoneForm.MatchString(s) }
