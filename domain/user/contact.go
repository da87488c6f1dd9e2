package user

// ValidEmail reports whether s can be the address of a user.
func ValidEmail(s string) bool { return validEmail(s) }

// ValidPhone reports whether s is an E.164 number such as +8613800138000.
func ValidPhone(s string) bool { return phoneForm.MatchString(s) }
