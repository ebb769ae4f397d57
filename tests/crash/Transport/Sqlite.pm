# SPDX-License-Identifier: Apache-2.0
#
# Queues in a SQLite file. Each trial has its own.
package Transport::Sqlite;
use strict;
use warnings;
use Store::Sqlite;
use Tools;

sub new { my ($class, %self) = @_; return bless \%self, $class }
sub queue { return $_[1] }
sub environment { }
sub keeps_order { return 0 }
sub home { return $_[0]->file }
sub file { return "$_[0]{dir}/queue.db" }
sub run_sql { my ($self, $text) = @_; return Store::Sqlite::run_sql($self->file, $text) }
sub section { return qq(transport = { plugin = "sqlite"; file = "@{[ $_[0]->file ]}"; $Store::Sqlite::patience };) }

sub installed {
    my ($self) = @_;
    $self->{queues} = { map { $_->[1] => "waybill_message_$_->[0]" } $self->run_sql('select number, name from waybill_queue') };
}
sub prepare { }

# Rows as the transport writes them, all in one transaction: above every message and every claim, for whoever has a claim deletes what
# lies in it. The queue is then looked at because somebody opened and closed the file of sessions.
sub inject {
    my ($self, @lines) = @_;
    my $table = $self->{queues}{crash};
    my ($number) = $table =~ /(\d+)$/;
    my $sql = "begin immediate;\n";
    for (@lines) {
        chomp;
        my ($id, $type, $body) = split /\t/;
        my $headers = pack 'V V/a x V/a x', 1, 'NServiceBus.EnclosedMessageTypes', $type;
        $sql .= sprintf "insert into $table (seq, id, headers, body) values ((select max((select coalesce(max(seq), 0) from $table), "
            . "(select coalesce(max(last), 0) from waybill_claim where queue = $number)) + 1), x'%s', x'%s', x'%s');\n",
            map { unpack 'H*', $_ } $id, $headers, $body;
    }
    $self->run_sql("$sql commit;");
    open my $bell, '>>', $self->file . '-sessions';
}

sub drain {
    my ($self) = @_;
    my @lines;
    for my $queue (qw(sink error), $self->{audit} ? 'audit' : ()) {
        my $table = $self->{queues}{$queue};
        for my $row ($self->run_sql("begin immediate; select id, headers, body, key from $table order by seq;
            delete from $table; commit;")) {
            my ($id, $headers, $body) = map { pack 'H*', $_ } @$row;
            my %headers = unpack 'V/(V/a x V/a x)', $headers;
            push @lines, join "\t", $queue, $id, Crash::digest(join ' ', @$row), $body,
                $headers{'NServiceBus.ExceptionInfo.Message'} // '';
        }
    }
    return Tools::messages(@lines);
}

sub ids { return map { pack 'H*', $_->[0] } @_ }
sub peek { my ($self) = @_; return ids($self->run_sql("select id from $self->{queues}{crash}")) }

sub take_all {    # out of the input queue
    my ($self) = @_;
    my $table = $self->{queues}{crash};
    return ids($self->run_sql("begin immediate; select id from $table; delete from $table; commit;"));
}

sub lead_to_sink {    # the destination that was not there: the sink under that name
    my ($self) = @_;
    $self->run_sql("update waybill_queue set name = 'nowhere' where name = 'sink'");
}

sub state {
    my ($self) = @_;
    my ($ready, $errors) = map { $_->[0] } $self->run_sql(
        "select count(*) from $self->{queues}{crash}; select count(*) from $self->{queues}{error}");
    return (ready => $ready, consumers => 0, errors => $errors);
}

1;
