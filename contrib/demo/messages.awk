# The demo's messages as JSON lines: COUNT orders, one in ten sent again with the same id:
# half of those at once, half 137 messages later.
BEGIN {
    for (i = 1; i <= count; i++) {
        print line(i)
        if (i % 20 == 0)
            print line(i)
        if (i > 137 && (i - 137) % 20 == 10)
            print line(i - 137)
    }
    for (i = count - 136; i <= count; i++)
        if (i % 20 == 10)
            print line(i)
}

function line(i) {
    return sprintf("{\"id\": \"order-%05d\", \"body\": {\"order\": \"%05d\"," \
                   " \"customer\": \"customer %d\", \"cents\": %d}}",
                   i, i, i % 97, 100 + (i * 7919) % 90000)
}
